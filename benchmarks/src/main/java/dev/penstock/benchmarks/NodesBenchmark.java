package dev.penstock.benchmarks;

import dev.penstock.runtime.cluster.LocalCluster;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The cost of idle nodes: starts one seed and N workers as processes of this machine, leaves them
 * alone once all have joined, then measures their CPU time and memory. Linux only.
 */
public final class NodesBenchmark {
    private static final List<Integer> WORKERS = List.of(1, 4, 8, 16, 32);
    private static final long JOIN_SECONDS = 240;
    private static final long REST_SECONDS = 20;
    private static final long MEASURE_SECONDS = 20;
    private static final double TICKS_PER_SECOND = 100;

    private final PrintStream out;

    private NodesBenchmark(PrintStream out) {
        this.out = out;
    }

    /** Accepts numbers of workers as arguments. */
    public static void main(String[] arguments) throws IOException, InterruptedException {
        List<Integer> workers =
                arguments.length == 0
                        ? WORKERS
                        : Arrays.stream(arguments).map(Integer::parseInt).toList();
        new NodesBenchmark(System.out).run(workers);
    }

    private void run(List<Integer> workers) throws IOException, InterruptedException {
        out.printf(
                "one seed and N workers on one machine of %d cores, all joined and idle for %d s, then measured for %d s%n%n",
                Runtime.getRuntime().availableProcessors(), REST_SECONDS, MEASURE_SECONDS);
        out.printf(
                "%8s %10s %14s %14s %14s %14s %14s%n",
                "workers",
                "joined s",
                "seed CPU %",
                "worker CPU %",
                "worst CPU %",
                "own MiB each",
                "own MiB all");
        for (int count : workers) {
            measure(count);
        }
        out.printf(
                "%nCPU: share of one core; own memory: the pages of a process, shared ones divided among those that share them (PSS)%n");
    }

    private void measure(int workers) throws IOException, InterruptedException {
        var joined = new AtomicInteger();
        Path runs = Files.createTempDirectory("penstock-nodes-");
        long start = System.nanoTime();
        try (LocalCluster cluster =
                LocalCluster.start(
                        new LocalCluster.Layout(1, workers, 0, runs),
                        line -> {
                            if (line.contains("] joined the cluster:")) {
                                joined.incrementAndGet();
                            }
                        })) {
            double joinedSeconds = awaitAll(joined, workers + 1, start);
            TimeUnit.SECONDS.sleep(REST_SECONDS);
            List<Long> pids = cluster.processes().stream().map(ProcessHandle::pid).toList();
            Map<Long, Long> before = new HashMap<>();
            for (long pid : pids) {
                before.put(pid, ticks(pid));
            }
            TimeUnit.SECONDS.sleep(MEASURE_SECONDS);
            List<Double> percent = new ArrayList<>();
            long kibibytes = 0;
            for (long pid : pids) {
                long used = ticks(pid) - before.getOrDefault(pid, 0L);
                percent.add(used / TICKS_PER_SECOND / MEASURE_SECONDS * 100);
                kibibytes += proportionalKibibytes(pid);
            }
            List<Double> ofWorkers = percent.subList(1, percent.size());
            out.printf(
                    "%8d %10.1f %14.1f %14.1f %14.1f %14.0f %14.0f%n",
                    workers,
                    joinedSeconds,
                    percent.getFirst(),
                    ofWorkers.stream().mapToDouble(Double::doubleValue).average().orElse(0),
                    ofWorkers.stream().mapToDouble(Double::doubleValue).max().orElse(0),
                    kibibytes / 1024.0 / pids.size(),
                    kibibytes / 1024.0);
        }
    }

    private static double awaitAll(AtomicInteger joined, int nodes, long start)
            throws InterruptedException {
        while (joined.get() < nodes) {
            if (System.nanoTime() - start > TimeUnit.SECONDS.toNanos(JOIN_SECONDS)) {
                throw new IllegalStateException(
                        "%d of %d nodes joined within %d s"
                                .formatted(joined.get(), nodes, JOIN_SECONDS));
            }
            TimeUnit.MILLISECONDS.sleep(50);
        }
        return (System.nanoTime() - start) / 1e9;
    }

    /** Returns the user and system time of a process so far. */
    private static long ticks(long pid) throws IOException {
        String stat = Files.readString(Path.of("/proc/" + pid + "/stat"));
        String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
        return Long.parseLong(fields[11]) + Long.parseLong(fields[12]);
    }

    private static long proportionalKibibytes(long pid) throws IOException {
        return Files.readAllLines(Path.of("/proc/" + pid + "/smaps_rollup")).stream()
                .filter(line -> line.startsWith("Pss:"))
                .mapToLong(line -> Long.parseLong(line.replaceAll("[^0-9]", "")))
                .sum();
    }
}
