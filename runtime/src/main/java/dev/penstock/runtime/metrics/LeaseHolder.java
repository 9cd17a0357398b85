package dev.penstock.runtime.metrics;

import java.io.IOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Who holds the lease of a run's directory.
 *
 * @param id of this start of this process, like no other's
 * @param hostId of the running system and of the space of process numbers in it: containers of one
 *     host do not see each other's processes
 * @param host for people
 * @param pid of the process, in that space
 * @param started when it was started, in a unit of its host's own: numbers are used again
 */
record LeaseHolder(String id, String hostId, String host, long pid, long started) {
    /** What one process can say of another. */
    enum Life {
        LIVES,
        GONE,
        UNKNOWN
    }

    /** Behind the name of the program, which ends with the line's last bracket. */
    private static final int STATE = 0;

    private static final int START_TICKS = 19;

    private static final Pattern TEXT =
            Pattern.compile(
                    "held by (\\S+)\\nprocess (\\d+)\\nstarted (-?\\d+)\\nhost (\\S*)\\nhost-id (\\S*)\\nbeat \\d+\\n");

    private static final LeaseHolder THIS_PROCESS =
            new LeaseHolder(
                    UUID.randomUUID().toString(),
                    hostIdHere(),
                    hostHere(),
                    ProcessHandle.current().pid(),
                    startedIfAlive(ProcessHandle.current().pid()).orElse(-1));

    static LeaseHolder thisProcess() {
        return THIS_PROCESS;
    }

    /** Reads what {@link #text} wrote; empty where that is not what is there. */
    static Optional<LeaseHolder> of(String text) {
        Matcher lines = TEXT.matcher(text);
        return lines.matches()
                ? Optional.of(
                        new LeaseHolder(
                                lines.group(1),
                                lines.group(5),
                                lines.group(4),
                                Long.parseLong(lines.group(2)),
                                Long.parseLong(lines.group(3))))
                : Optional.empty();
    }

    /** Of one length for all beats. */
    String text(long beat) {
        return "held by %s\nprocess %d\nstarted %d\nhost %s\nhost-id %s\nbeat %019d\n"
                .formatted(id, pid, started, host, hostId, beat);
    }

    /** What another process knows of this one's life. */
    Life lifeSeenFrom(LeaseHolder other) {
        if (!hostId.equals(other.hostId)) {
            return Life.UNKNOWN;
        }
        OptionalLong now = startedIfAlive(pid);
        return now.isPresent() && now.getAsLong() == started ? Life.LIVES : Life.GONE;
    }

    /**
     * When a process was started; empty if there is none, or what is left of one that ended and
     * whose parent does not ask how. The kernel's own count is taken where there is one: the time
     * of day at which a process began changes with the clock.
     */
    private static OptionalLong startedIfAlive(long pid) {
        Path stat = Path.of("/proc", Long.toString(pid), "stat");
        try {
            String line = Files.readString(stat);
            String[] fields = line.substring(line.lastIndexOf(')') + 2).split(" ", -1);
            boolean ended = fields[STATE].equals("Z") || fields[STATE].equals("X");
            return ended
                    ? OptionalLong.empty()
                    : OptionalLong.of(Long.parseLong(fields[START_TICKS]));
        } catch (IOException e) {
            return ProcessHandle.of(pid)
                    .filter(ProcessHandle::isAlive)
                    .map(process -> process.info().startInstant().map(Instant::toEpochMilli))
                    .map(instant -> OptionalLong.of(instant.orElse(-1L)))
                    .orElse(OptionalLong.empty());
        }
    }

    private static String hostIdHere() {
        try {
            String boot = Files.readString(Path.of("/proc/sys/kernel/random/boot_id")).strip();
            return boot + "/" + Files.readSymbolicLink(Path.of("/proc/self/ns/pid"));
        } catch (IOException e) {
            return hostHere(); // no Linux
        }
    }

    private static String hostHere() {
        try {
            return InetAddress.getLocalHost().getHostName().replaceAll("\\s", "-");
        } catch (UnknownHostException e) {
            return "unknown";
        }
    }
}
