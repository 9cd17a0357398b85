package dev.penstock.systemtests.support;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;

/** What a dead run might leave on a Linux machine. */
public final class Leftovers {
    private static final int LISTENING = 0x0A;

    private Leftovers() {}

    /** Returns the directories in shared memory that carry a run's name. */
    public static List<Path> sharedMemory(String run) throws IOException {
        try (Stream<Path> entries = Files.list(Path.of("/dev/shm"))) {
            return entries.filter(entry -> entry.getFileName().toString().contains(run)).toList();
        }
    }

    /** Deletes those directories. */
    public static void deleteSharedMemory(String run) throws IOException {
        for (Path directory : sharedMemory(run)) {
            try (Stream<Path> entries = Files.walk(directory)) {
                for (Path entry : entries.sorted(Comparator.reverseOrder()).toList()) {
                    Files.delete(entry);
                }
            }
        }
    }

    /**
     * A listening socket.
     *
     * @param port on which it listens
     * @param inode the kernel's number for it, which no other socket has
     */
    public record Listening(int port, long inode) {}

    /**
     * Fails if one of these sockets still listens. Whether the ports are free is another question:
     * processes that run alongside this test may have got one of them.
     */
    public static void expectClosed(Set<Listening> sockets) throws IOException {
        assertThat(listening()).doesNotContainAnyElementsOf(sockets);
    }

    /** Returns the sockets on which these processes listen. */
    public static Set<Listening> listening(List<ProcessHandle> processes) throws IOException {
        Set<String> open = new HashSet<>();
        for (ProcessHandle process : processes) {
            try (Stream<Path> files = Files.list(Path.of("/proc/" + process.pid() + "/fd"))) {
                for (Path descriptor : files.toList()) {
                    if (Files.isSymbolicLink(descriptor)) {
                        open.add(Files.readSymbolicLink(descriptor).toString());
                    }
                }
            }
        }
        Set<Listening> theirs = new HashSet<>(listening());
        theirs.removeIf(socket -> !open.contains("socket:[" + socket.inode() + "]"));
        return theirs;
    }

    private static Set<Listening> listening() throws IOException {
        List<String> lines = new ArrayList<>(Files.readAllLines(Path.of("/proc/net/tcp")));
        lines.addAll(Files.readAllLines(Path.of("/proc/net/tcp6")));
        Set<Listening> all = new HashSet<>();
        for (String line : lines) {
            String[] words = line.strip().split("\\s+");
            if (!words[3].equals("st") && Integer.parseInt(words[3], 16) == LISTENING) {
                int port = Integer.parseInt(words[1].substring(words[1].indexOf(':') + 1), 16);
                all.add(new Listening(port, Long.parseLong(words[9])));
            }
        }
        return all;
    }
}
