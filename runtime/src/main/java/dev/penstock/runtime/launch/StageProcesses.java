package dev.penstock.runtime.launch;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.LongPredicate;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The child processes of a run: one per rank, and spare ones. A child ends when its standard input
 * does, so no child outlives this process, however it dies.
 */
final class StageProcesses implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(StageProcesses.class);
    private static final Duration PATIENCE = Duration.ofSeconds(5);
    private static final int LAST_WORDS = 500;
    private static final String EVERY_JVM_SAYS =
            "WARNING: Using incubator modules: jdk.incubator.vector";

    /** Told of the end of a child that nobody asked to end. */
    @FunctionalInterface
    interface DeathListener {
        /**
         * Called once for each such child.
         *
         * @param rank that the child was started for; empty for a spare
         * @param how it ended
         */
        void onDeath(long pid, Optional<Integer> rank, String how);
    }

    private static final int KILL = 9;
    private static final int TERMINATE = 15;

    private final RunOptions options;
    private final DeathListener listener;
    private final LongPredicate hasRank;
    private final List<Process> children = new ArrayList<>();
    private final Map<Integer, Process> latest = new HashMap<>();
    private final Map<Integer, Integer> starts = new HashMap<>();
    private int spares;
    private volatile boolean closing;

    /**
     * @param hasRank whether a rank was placed in the process of this id
     */
    StageProcesses(RunOptions options, DeathListener listener, LongPredicate hasRank) {
        this.options = options;
        this.listener = listener;
        this.hasRank = hasRank;
    }

    /**
     * Starts a child.
     *
     * @param rank that it is for; empty for a spare
     * @param address of the supervisor
     * @throws UncheckedIOException if it cannot be started
     */
    synchronized void start(Optional<Integer> rank, Path driverDirectory, String address) {
        Path output = options.directory().resolve(name(rank) + ".out");
        Process child;
        try {
            child =
                    new ProcessBuilder(command(rank, driverDirectory, address))
                            .redirectErrorStream(true)
                            .redirectOutput(output.toFile())
                            .start();
        } catch (IOException e) {
            throw new UncheckedIOException("cannot start a stage process: " + e.getMessage(), e);
        }
        children.add(child);
        rank.ifPresent(r -> latest.put(r, child));
        var _ = child.onExit().thenAccept(ended -> onExit(ended, rank, output));
    }

    /** The last child that was started for this rank, while it lives. */
    synchronized Optional<Long> living(int rank) {
        return Optional.ofNullable(latest.get(rank)).filter(Process::isAlive).map(Process::pid);
    }

    synchronized boolean hasLiving(long pid) {
        return children.stream().anyMatch(child -> child.pid() == pid && child.isAlive());
    }

    /** Of this process alone: one that was given up may still write when another has its place. */
    private String name(Optional<Integer> rank) {
        if (rank.isEmpty()) {
            return "spare-" + ++spares;
        }
        int start = starts.merge(rank.get(), 1, Integer::sum);
        return start == 1 ? "rank-" + rank.get() : "rank-%d-start-%d".formatted(rank.get(), start);
    }

    private void onExit(Process ended, Optional<Integer> rank, Path output) {
        if (closing) {
            return;
        }
        if (rank.isPresent() && isSuperseded(rank.get(), ended)) {
            LOG.info(
                    "of a former rank {}: {}",
                    rank.get(),
                    how(ended.pid(), ended.exitValue(), output));
        } else {
            listener.onDeath(ended.pid(), rank, how(ended.pid(), ended.exitValue(), output));
        }
    }

    private synchronized boolean isSuperseded(int rank, Process ended) {
        return !ended.equals(latest.get(rank));
    }

    private List<String> command(Optional<Integer> rank, Path driverDirectory, String address) {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
                .filter(argument -> !argument.startsWith("-agentlib"))
                .filter(argument -> !argument.startsWith("-javaagent"))
                .forEach(command::add);
        command.add("-cp");
        command.add(System.getProperty("java.class.path"));
        command.add(StageProcess.class.getName());
        command.add(options.directory().toString());
        command.add(rank.map(r -> "" + r).orElse(StageProcess.SPARE));
        command.add(driverDirectory.toString());
        command.add(address);
        if (rank.isEmpty() || starts.getOrDefault(rank.get(), 1) > 1) {
            // when a run begins, all its processes want the processors that a warm-up would take
            command.add(StageProcess.WARM_UP);
        }
        return command;
    }

    /**
     * A process that was killed did not know it: what it said last is about something else.
     *
     * @param output what it said
     */
    static String how(long pid, int code, Path output) {
        boolean killed = code == 128 + KILL || code == 128 + TERMINATE;
        String signal = code > 128 ? " (signal %d)".formatted(code - 128) : "";
        return "its process %d ended with exit code %d%s%s"
                .formatted(pid, code, signal, killed ? "" : lastWords(output));
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
            return ", saying: " + endOf(text);
        } catch (IOException e) {
            return " (%s cannot be read: %s)".formatted(output, e.getMessage());
        }
    }

    /** Whole lines as far as they are not too long. */
    private static String endOf(String text) {
        if (text.length() <= LAST_WORDS) {
            return text;
        }
        String end = text.substring(text.length() - LAST_WORDS);
        int line = end.indexOf('\n');
        return line < 0 ? ".." + end : end.substring(line + 1);
    }

    /**
     * Ends all children: politely, then not. One without a rank has nothing to close, and may not
     * yet listen.
     */
    @Override
    public synchronized void close() {
        closing = true;
        for (Process child : children) {
            if (!hasRank.test(child.pid())) {
                child.destroyForcibly();
            }
        }
        end(children, PATIENCE);
    }

    /**
     * Ends these processes by the end of their input; at once those that are suspended, which would
     * not notice it.
     *
     * @param patience for each of them
     */
    static void end(List<Process> children, Duration patience) {
        LinuxVitals vitals = LinuxVitals.ofThisHost();
        for (Process child : children) {
            try {
                child.getOutputStream().close();
            } catch (IOException e) {
                child.destroy();
            }
            if (vitals.isSuspended(child.pid())) {
                child.destroyForcibly();
            }
        }
        for (Process child : children) {
            awaitEnd(child, patience);
        }
    }

    private static void awaitEnd(Process child, Duration patience) {
        try {
            if (!child.waitFor(patience.toMillis(), TimeUnit.MILLISECONDS)) {
                child.destroyForcibly();
                child.waitFor(PATIENCE.toMillis(), TimeUnit.MILLISECONDS);
            }
        } catch (InterruptedException e) {
            child.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }
}
