package dev.penstock.runtime.launch;

import dev.penstock.actors.dataplane.HostIdentity;
import dev.penstock.actors.spi.ProcessVitals;
import dev.penstock.actors.spi.VitalSigns;
import dev.penstock.actors.spi.VitalSigns.ThreadSigns;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;

/**
 * Reads the signs of processes from Linux's {@code /proc}. On other systems, and where the kernel
 * does not count waits for processors, nothing is known of any process.
 */
public final class LinuxVitals implements ProcessVitals {
    private static final Path PROC = Path.of("/proc");

    /** The index of the start time after the state, which is field 3 of {@code stat}. */
    private static final int START_TIME = 19;

    private final Path proc;
    private final String thisHost;

    LinuxVitals(Path proc, String thisHost) {
        this.proc = proc;
        this.thisHost = thisHost;
    }

    /** Observes the processes that this one can see. */
    public static LinuxVitals ofThisHost() {
        return new LinuxVitals(PROC, HostIdentity.ofThisHost());
    }

    /** Whether a process of this host stands still until somebody lets it go on, as by SIGSTOP. */
    public boolean isSuspended(long pid) {
        return of(pid, Optional.empty())
                .filter(signs -> signs.state() == VitalSigns.State.STOPPED)
                .isPresent();
    }

    /**
     * The words of a process's command line, all of them: Java's own view of a process ends where
     * the first page of them does.
     *
     * @return empty where they cannot be read
     */
    public static List<String> arguments(ProcessHandle process) {
        try {
            Path line = PROC.resolve(Long.toString(process.pid())).resolve("cmdline");
            return List.of(Files.readString(line, StandardCharsets.ISO_8859_1).split("\0", -1));
        } catch (IOException e) {
            return process.info().arguments().map(Arrays::asList).orElse(List.of());
        }
    }

    @Override
    public Optional<VitalSigns> ofThisProcess() {
        return of(ProcessHandle.current().pid(), Optional.empty());
    }

    @Override
    public Optional<VitalSigns> of(long pid, Optional<String> host) {
        if (host.isPresent() && !host.get().equals(thisHost)) {
            return Optional.empty();
        }
        Path process = proc.resolve(Long.toString(pid));
        try {
            List<ThreadSigns> threads = threads(process.resolve("task"));
            String[] stat = stat(process);
            return threads.isEmpty()
                    ? Optional.empty()
                    : Optional.of(
                            new VitalSigns(
                                    Long.parseLong(stat[START_TIME]), state(stat[0]), threads));
        } catch (IOException | RuntimeException e) {
            return Optional.empty(); // it ended in the meantime, or this is another system
        }
    }

    private static VitalSigns.State state(String letter) {
        return switch (letter) {
            case "T", "t" -> VitalSigns.State.STOPPED;
            case "Z", "X", "x" -> VitalSigns.State.ENDED;
            default -> VitalSigns.State.ALIVE;
        };
    }

    private static List<ThreadSigns> threads(Path tasks) throws IOException {
        List<ThreadSigns> threads = new ArrayList<>();
        try (DirectoryStream<Path> listed = Files.newDirectoryStream(tasks)) {
            for (Path task : listed) {
                thread(task).ifPresent(threads::add);
            }
        }
        return threads;
    }

    private static Optional<ThreadSigns> thread(Path task) {
        try {
            String state = stat(task)[0];
            String[] counts = Files.readString(task.resolve("schedstat")).strip().split(" ");
            return Optional.of(
                    new ThreadSigns(
                            Long.parseLong(task.getFileName().toString()),
                            state.equals("R") || state.equals("D"),
                            Long.parseLong(counts[0]),
                            Long.parseLong(counts[1]),
                            Long.parseLong(counts[2])));
        } catch (IOException | RuntimeException e) {
            return Optional.empty(); // threads come and go
        }
    }

    /** Returns the fields from the state on: the name before it may contain anything. */
    private static String[] stat(Path task) throws IOException {
        String line = Files.readString(task.resolve("stat"));
        return line.substring(line.lastIndexOf(')') + 2).strip().split(" ");
    }
}
