package dev.penstock.systemtests.support;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;

/** What a run that died might leave on a Linux machine. */
public final class Leftovers {
    private static final int LISTENING = 0x0A;

    private Leftovers() {}

    /** Directories in shared memory that carry a run's name. */
    public static List<Path> sharedMemory(String run) throws IOException {
        try (Stream<Path> entries = Files.list(Path.of("/dev/shm"))) {
            return entries.filter(entry -> entry.getFileName().toString().contains(run)).toList();
        }
    }

    /** Fails if somebody listens on one of these ports. */
    public static void expectFree(Set<Integer> ports) throws IOException {
        for (int port : ports) {
            new ServerSocket(port, 1, InetAddress.getLoopbackAddress()).close();
        }
    }

    /** Ports on which these processes wait for connections. */
    public static Set<Integer> listeningPorts(List<ProcessHandle> processes) throws IOException {
        Set<String> sockets = new HashSet<>();
        for (ProcessHandle process : processes) {
            try (Stream<Path> open = Files.list(Path.of("/proc/" + process.pid() + "/fd"))) {
                for (Path descriptor : open.toList()) {
                    if (Files.isSymbolicLink(descriptor)) {
                        sockets.add(Files.readSymbolicLink(descriptor).toString());
                    }
                }
            }
        }
        List<String> lines = new ArrayList<>(Files.readAllLines(Path.of("/proc/net/tcp")));
        lines.addAll(Files.readAllLines(Path.of("/proc/net/tcp6")));
        Set<Integer> ports = new HashSet<>();
        for (String line : lines) {
            String[] words = line.strip().split("\\s+");
            if (sockets.contains("socket:[" + words[9] + "]")
                    && Integer.parseInt(words[3], 16) == LISTENING) {
                ports.add(Integer.parseInt(words[1].substring(words[1].indexOf(':') + 1), 16));
            }
        }
        return ports;
    }
}
