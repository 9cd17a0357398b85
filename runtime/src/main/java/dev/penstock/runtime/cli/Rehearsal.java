package dev.penstock.runtime.cli;

import dev.penstock.runtime.cli.command.ExitCode;
import java.io.IOException;
import java.io.PipedInputStream;
import java.io.PipedOutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Trains a little in one process, and a little more on a cluster of one node, so that a Java
 * machine that is told to ({@code -XX:AOTCacheOutput}, JEP 514) can write down which classes
 * Penstock needs and which methods become hot. Whoever starts with that cache, stage processes
 * included, is at work in about half the processor time.
 *
 * <p>Arguments: an empty directory to work in, and more words of the training's command line.
 */
public final class Rehearsal {
    private static final Duration PATIENCE = Duration.ofSeconds(90);

    private Rehearsal() {}

    public static void main(String[] arguments) throws IOException {
        CompletableFuture.delayedExecutor(PATIENCE.toSeconds(), TimeUnit.SECONDS)
                .execute(() -> Runtime.getRuntime().halt(ExitCode.FAILURE));
        Path folder = Path.of(arguments[0]);
        Files.writeString(folder.resolve("text.txt"), "turbines turn, valves open. ".repeat(900));
        Path config = folder.resolve("rehearsal.conf");
        Files.writeString(
                config,
                """
                run { name = rehearsal, steps = 4, directory = "%s" }
                model { context = 64, width = 64, layers = 2, heads = 2 }
                data { source = "text.txt" }
                batch { sequences = 4, micro-batches = 4 }
                pipeline { stages = 2 }
                evaluation { every = 4 }
                checkpoint { every = 2 }
                """
                        .formatted(folder.resolve("runs")));
        List<String> train = new ArrayList<>(List.of("train", config.toString()));
        train.addAll(List.of(arguments).subList(1, arguments.length));
        int code = execute(train);
        if (code == ExitCode.OK) {
            trainOnCluster(folder, train); // should it fail, what was seen is worth keeping
        }
        System.exit(code);
    }

    private static void trainOnCluster(Path folder, List<String> train) throws IOException {
        Path node = folder.resolve("node.conf");
        Files.writeString(
                node,
                "cluster { cluster-id = rehearsal, role = both, name = both, bind = 127.0.0.1, runs = \"%s\" }"
                        .formatted(folder.resolve("runs")));
        int port = freePort();
        System.setIn(new PipedInputStream(new PipedOutputStream())); // one that does not end
        List<String> start =
                List.of("node", node.toString(), "--end-with-input", "--port", "" + port);
        Thread.ofPlatform().daemon().start(() -> execute(start));
        awaitListener(port);
        train.addAll(List.of("--cluster", "127.0.0.1:" + port));
        execute(train);
    }

    private static int execute(List<String> words) {
        String[] arguments = words.toArray(String[]::new);
        return Main.commandLine(arguments).execute(arguments);
    }

    private static void awaitListener(int port) throws IOException {
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (true) {
            try (var _ = new Socket(InetAddress.getLoopbackAddress(), port)) {
                return;
            } catch (IOException e) {
                if (System.nanoTime() > deadline) {
                    throw e;
                }
                LockSupport.parkNanos(20_000_000);
            }
        }
    }

    private static int freePort() throws IOException {
        try (var socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }
}
