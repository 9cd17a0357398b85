package dev.penstock.runtime.launch;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;

/**
 * One child process per rank. A child ends when its standard input does, so no child outlives this
 * process, however it dies.
 */
final class StageProcesses implements AutoCloseable {
    private static final Duration PATIENCE = Duration.ofSeconds(5);
    private static final int LAST_WORDS = 300;
    private static final String EVERY_JVM_SAYS =
            "WARNING: Using incubator modules: jdk.incubator.vector";

    private final List<Process> children = new ArrayList<>();
    private volatile boolean closing;

    private StageProcesses() {}

    /**
     * Starts a process for each rank.
     *
     * @param onDeath told the rank and how it ended, for a child that ends before {@link #close}
     */
    static StageProcesses start(
            int ranks,
            RunOptions options,
            Path driverDirectory,
            String seed,
            BiConsumer<Integer, String> onDeath) {
        var processes = new StageProcesses();
        try {
            for (int rank = 0; rank < ranks; rank++) {
                processes.startOne(rank, options, driverDirectory, seed, onDeath);
            }
            return processes;
        } catch (IOException e) {
            processes.close();
            throw new UncheckedIOException("cannot start a stage process: " + e.getMessage(), e);
        }
    }

    private void startOne(
            int rank,
            RunOptions options,
            Path driverDirectory,
            String seed,
            BiConsumer<Integer, String> onDeath)
            throws IOException {
        Path output = options.directory().resolve("rank-%d.out".formatted(rank));
        Process child =
                new ProcessBuilder(command(rank, options, driverDirectory, seed))
                        .redirectErrorStream(true)
                        .redirectOutput(output.toFile())
                        .start();
        children.add(child);
        child.onExit()
                .thenAccept(
                        ended -> {
                            if (!closing) {
                                onDeath.accept(rank, how(ended, output));
                            }
                        });
    }

    private static List<String> command(
            int rank, RunOptions options, Path driverDirectory, String seed) {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
                .filter(argument -> !argument.startsWith("-agentlib"))
                .filter(argument -> !argument.startsWith("-javaagent"))
                .forEach(command::add);
        Path log = options.directory().resolve("rank-%d.log".formatted(rank));
        command.add("-Dpenstock.log=" + log);
        command.add("-cp");
        command.add(System.getProperty("java.class.path"));
        command.add(StageProcess.class.getName());
        command.add(options.directory().toString());
        command.add(Integer.toString(rank));
        command.add(driverDirectory.toString());
        command.add(seed);
        return command;
    }

    private static String how(Process ended, Path output) {
        int code = ended.exitValue();
        String signal = code > 128 ? " (signal %d)".formatted(code - 128) : "";
        return "its process %d ended with exit code %d%s%s"
                .formatted(ended.pid(), code, signal, lastWords(output));
    }

    private static String lastWords(Path output) {
        try {
            String text =
                    Files.readString(output, StandardCharsets.UTF_8)
                            .replace(EVERY_JVM_SAYS, "")
                            .strip();
            if (text.isEmpty()) {
                return "";
            }
            return ", saying: " + text.substring(Math.max(0, text.length() - LAST_WORDS));
        } catch (IOException e) {
            return " (%s cannot be read: %s)".formatted(output, e.getMessage());
        }
    }

    /** Ends all children: politely, then not. */
    @Override
    public void close() {
        closing = true;
        for (Process child : children) {
            try {
                child.getOutputStream().close();
            } catch (IOException e) {
                child.destroy();
            }
        }
        for (Process child : children) {
            awaitEnd(child);
        }
    }

    private static void awaitEnd(Process child) {
        try {
            if (!child.waitFor(PATIENCE.toMillis(), TimeUnit.MILLISECONDS)) {
                child.destroyForcibly();
                child.waitFor(PATIENCE.toMillis(), TimeUnit.MILLISECONDS);
            }
        } catch (InterruptedException e) {
            child.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }
}
