package dev.penstock.runtime.cluster;

import dev.penstock.runtime.launch.LinuxVitals;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Seeds and workers as child processes of this one. A child ends when its standard input does, so
 * none outlives this process, however it dies.
 */
public final class LocalCluster implements AutoCloseable {
    /**
     * What to start.
     *
     * @param port of the first seed; the others follow; 0 for free ones
     * @param runs where run directories are made, absolute
     * @param more settings of a child by its name, beyond what all have
     * @param startAgain whether a child that dies is started again
     */
    public record Layout(
            int seeds,
            int workers,
            int port,
            Path runs,
            Function<String, List<String>> more,
            boolean startAgain) {
        /** Children that need nothing more, and stay dead. */
        public Layout(int seeds, int workers, int port, Path runs) {
            this(seeds, workers, port, runs, _ -> List.of(), false);
        }
    }

    private record Child(String name, boolean seed, List<String> settings, Process process) {}

    private static final Logger LOG = LoggerFactory.getLogger(LocalCluster.class);
    private static final String MAIN = "dev.penstock.runtime.cli.Main";
    private static final Pattern LISTENS = Pattern.compile(" listens on (\\S+)$");
    private static final Pattern NOISE =
            Pattern.compile("WARNING: Using incubator modules: jdk.incubator.vector");
    private static final Duration START = Duration.ofSeconds(90);
    private static final Duration PATIENCE = Duration.ofSeconds(20);
    private static final Duration PAUSE = Duration.ofSeconds(1);

    private final Layout layout;
    private final Consumer<String> tell;
    private final List<Child> children = new CopyOnWriteArrayList<>();
    private final List<String> seeds = new ArrayList<>();
    private final CompletableFuture<String> broken = new CompletableFuture<>();
    private int livingSeeds;
    private int livingWorkers;
    private volatile boolean closing;

    private LocalCluster(Layout layout, Consumer<String> tell) {
        this.layout = layout;
        this.tell = tell;
        this.livingSeeds = layout.seeds();
        this.livingWorkers = layout.workers();
    }

    /**
     * Starts all; the seeds listen when this returns, the workers are on their way.
     *
     * @param tell takes what the children say, a line each with the child's name before it
     * @throws ClusterException if a seed does not start
     */
    public static LocalCluster start(Layout layout, Consumer<String> tell) {
        var cluster = new LocalCluster(layout, tell);
        try {
            for (int seed = 0; seed < layout.seeds(); seed++) {
                cluster.startSeed(seed);
            }
            cluster.startWorkers();
            return cluster;
        } catch (RuntimeException e) {
            cluster.close();
            throw e;
        }
    }

    /** Where the first seed listens, {@code host:port}. */
    public String seed() {
        return seeds.getFirst();
    }

    /** All children that were started, seeds first. */
    public List<ProcessHandle> processes() {
        return children.stream().map(Child::process).map(Process::toHandle).toList();
    }

    /**
     * The process that was started last under a name such as {@code seed-1} or {@code worker-2}.
     */
    public Optional<ProcessHandle> process(String name) {
        return children.reversed().stream()
                .filter(child -> child.name().equals(name))
                .map(child -> child.process().toHandle())
                .findFirst();
    }

    /**
     * Completed when the last seed or the last worker ends before {@link #close}, with how. Other
     * deaths are told, and are the cluster's to survive.
     */
    public CompletableFuture<String> broken() {
        return broken;
    }

    /**
     * As many at a time as there are processors: thirty virtual machines that warm up together keep
     * each other from answering, and a cluster in which somebody does not answer takes nobody in.
     */
    private void startWorkers() {
        int together = Runtime.getRuntime().availableProcessors();
        List<CompletableFuture<String>> starting = new ArrayList<>();
        for (int worker = 0; worker < layout.workers(); worker++) {
            if (worker >= together) {
                awaitStart(starting.get(worker - together));
            }
            starting.add(startOne("worker-" + (worker + 1), false, workerSettings(worker)));
        }
    }

    /** Its end or its delay concerns others: {@link #onEnd} and the lines of the child. */
    private static void awaitStart(CompletableFuture<String> listens) {
        try {
            listens.get(START.toMillis(), TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new ClusterException("interrupted while workers started", e);
        } catch (ExecutionException | TimeoutException e) {
            LOG.debug("a worker is slow to start, or has ended", e);
        }
    }

    private void startSeed(int index) {
        int port = layout.port() == 0 ? 0 : layout.port() + index;
        List<String> settings = new ArrayList<>();
        settings.add("cluster.role=seed");
        settings.add("cluster.name=seed-" + (index + 1));
        settings.add("cluster.port=" + port);
        settings.add("cluster.runs=\"" + layout.runs() + '"');
        if (!seeds.isEmpty()) {
            settings.add("cluster.seeds=" + quoted(seeds));
        }
        CompletableFuture<String> listens = startOne("seed-" + (index + 1), true, settings);
        try {
            seeds.add(listens.get(START.toMillis(), TimeUnit.MILLISECONDS));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new ClusterException("interrupted while a seed started", e);
        } catch (ExecutionException | TimeoutException e) {
            throw new ClusterException("seed-%d does not start".formatted(index + 1), e);
        }
    }

    /** Workers share what is free: each must not promise all of it. */
    private List<String> workerSettings(int index) {
        long bytes = Math.max(1 << 20, ThisHost.freeBytes() / 5 * 4 / layout.workers());
        return List.of(
                "cluster.role=worker",
                "cluster.name=worker-" + (index + 1),
                "cluster.seeds=" + quoted(seeds),
                "cluster.memory=" + bytes);
    }

    private static String quoted(List<String> texts) {
        return '[' + String.join(",", texts.stream().map(text -> '"' + text + '"').toList()) + ']';
    }

    private CompletableFuture<String> startOne(String name, boolean seed, List<String> settings) {
        try {
            List<String> all =
                    Stream.concat(settings.stream(), layout.more().apply(name).stream()).toList();
            Process process = new ProcessBuilder(command(all)).redirectErrorStream(true).start();
            var child = new Child(name, seed, settings, process);
            children.add(child);
            var listens = new CompletableFuture<String>();
            Thread.ofVirtual().start(() -> readOutput(name, process, listens));
            var _ = process.onExit().thenAccept(_ -> onEnd(child, listens));
            return listens;
        } catch (IOException e) {
            throw new UncheckedIOException("cannot start a process: " + e.getMessage(), e);
        }
    }

    private static List<String> command(List<String> settings) throws IOException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
                .filter(argument -> !argument.startsWith("-agentlib"))
                .filter(argument -> !argument.startsWith("-javaagent"))
                .forEach(command::add);
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), MAIN, "node"));
        command.addAll(List.of(configuration().toString(), "--end-with-input"));
        settings.forEach(setting -> command.addAll(List.of("--set", setting)));
        return command;
    }

    /** Everything is said by overrides. */
    private static Path configuration() throws IOException {
        Path empty = Files.createTempFile("penstock-node-", ".conf");
        empty.toFile().deleteOnExit();
        return empty;
    }

    private void readOutput(String name, Process child, CompletableFuture<String> listens) {
        try (BufferedReader lines = child.inputReader(StandardCharsets.UTF_8)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                Matcher listening = LISTENS.matcher(line);
                if (listening.find()) {
                    listens.complete(listening.group(1));
                }
                if (!NOISE.matcher(line).matches()) {
                    tell.accept("[%s] %s".formatted(name, line));
                }
            }
        } catch (IOException e) {
            tell.accept("[%s] says no more: %s".formatted(name, e.getMessage()));
        }
    }

    private synchronized void onEnd(Child child, CompletableFuture<String> listens) {
        int code = child.process().exitValue();
        String signal = code > 128 ? " (signal %d)".formatted(code - 128) : "";
        String how = "%s ended with exit code %d%s".formatted(child.name(), code, signal);
        listens.completeExceptionally(new ClusterException(how));
        if (closing) {
            return;
        }
        if (layout.startAgain()) {
            tell.accept(how + "; it is started again");
            Thread.ofVirtual().start(() -> startAgain(child));
            return;
        }
        int left = child.seed() ? --livingSeeds : --livingWorkers;
        if (left == 0) {
            broken.complete("%s; no %s is left".formatted(how, child.seed() ? "seed" : "worker"));
        } else {
            tell.accept(how + "; the cluster goes on without it");
        }
    }

    /** Not at once: one that cannot start would be started without end. */
    private void startAgain(Child child) {
        LockSupport.parkNanos(PAUSE.toNanos());
        synchronized (this) {
            if (!closing) {
                var _ = startOne(child.name(), child.seed(), child.settings());
            }
        }
    }

    /** Ends all: politely, then not. Workers first, so that they can still say goodbye. */
    @Override
    public void close() {
        synchronized (this) {
            closing = true; // nobody is started from here on
        }
        end(children.reversed().stream().map(Child::process).toList(), PATIENCE);
    }

    /**
     * Ends these processes by the end of their input; at once those that are suspended, which would
     * not notice it.
     *
     * @param patience for all of them together
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
        long deadline = System.nanoTime() + patience.toNanos();
        for (Process child : children) {
            awaitEnd(child, deadline);
        }
    }

    private static void awaitEnd(Process child, long deadline) {
        try {
            if (!child.waitFor(Math.max(0, deadline - System.nanoTime()), TimeUnit.NANOSECONDS)) {
                child.destroyForcibly();
                child.waitFor(PATIENCE.toMillis(), TimeUnit.MILLISECONDS);
            }
        } catch (InterruptedException e) {
            child.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }
}
