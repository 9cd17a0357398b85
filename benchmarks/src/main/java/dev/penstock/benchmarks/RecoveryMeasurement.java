package dev.penstock.benchmarks;

import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.runtime.config.ConfigLoader;
import dev.penstock.runtime.config.LoadedConfig;
import dev.penstock.runtime.launch.PipelineRun;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.launch.RunOptions;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicReference;
import java.util.random.RandomGenerator;
import java.util.stream.Stream;

/**
 * What one killed process cost.
 *
 * @param seconds from the kill to the next committed step
 * @param stepsLost committed steps that were done again
 */
record RecoveryMeasurement(
        double seconds, double detectSeconds, double resumeSeconds, long stepsLost) {
    private static final int STAGES = 4;

    /** Steps before a kill: the code is compiled and checkpoints exist. */
    private static final int STEADY_STEPS = 30;

    private static final String STAGE_PROCESS = "dev.penstock.runtime.launch.StageProcess";

    /** Runs as many trainings as so many kills need. */
    static List<RecoveryMeasurement> of(RecoveryBenchmark.Row row, int kills) {
        List<RecoveryMeasurement> found = new ArrayList<>();
        var random = RandomGenerator.of("L64X128MixRandom");
        while (found.size() < kills) {
            int now = Math.min(row.killsPerRun(), kills - found.size());
            try {
                Path directory = Files.createTempDirectory("penstock-recovery-");
                try {
                    found.addAll(killInOneRun(row, now, directory, random));
                } finally {
                    delete(directory);
                }
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
        return found;
    }

    private static List<RecoveryMeasurement> killInOneRun(
            RecoveryBenchmark.Row row, int kills, Path directory, RandomGenerator random)
            throws IOException {
        LoadedConfig loaded =
                ConfigLoader.loadWithOrigins(configuration(row, directory), List.of());
        var options =
                new RunOptions(
                        RunOptions.newRunId("recovery"),
                        directory,
                        Optional.empty(),
                        Optional.empty(),
                        Optional.empty(),
                        false);
        var steps = new RecoverySteps();
        var interrupt = new AtomicReference<Runnable>(() -> {});
        List<RecoveryMeasurement> found = new ArrayList<>();
        try (RunAssembly assembly = RunAssembly.of(loaded, options)) {
            var run = new PipelineRun(assembly, steps, interrupt::set);
            var ended = new CompletableFuture<RunOutcome>();
            Thread.ofPlatform() // the run itself needs the common pool's threads
                    .name("run")
                    .daemon()
                    .start(() -> ended.complete(outcomeOf(run, steps)));
            for (int kill = 0; kill < kills; kill++) {
                steps.awaitMore(STEADY_STEPS);
                pause(random.nextDouble() * steps.medianStepNanos());
                found.add(kill(ofRank((2 * kill + 2) % STAGES), steps));
            }
            interrupt.get().run();
            RunOutcome outcome = ended.join();
            if (!(outcome instanceof RunOutcome.Interrupted)) {
                throw new IllegalStateException(row.name() + ": " + outcome);
            }
        }
        return found;
    }

    private static RunOutcome outcomeOf(PipelineRun run, RecoverySteps steps) {
        try {
            return run.run();
        } catch (RuntimeException e) {
            return new RunOutcome.Failed(0, e.toString());
        } finally {
            steps.end();
        }
    }

    private static RecoveryMeasurement kill(ProcessHandle process, RecoverySteps steps) {
        long recoveries = steps.recoveries();
        long killed = System.nanoTime();
        process.destroyForcibly();
        RecoverySteps.Recovery back = steps.awaitRecovery(recoveries);
        return new RecoveryMeasurement(
                (back.nextStepNanos() - killed) / 1e9,
                back.report().detectNanos() / 1e9,
                back.report().resumeNanos() / 1e9,
                back.report().stepsLost());
    }

    /** Somewhere in a step. */
    private static void pause(double nanos) {
        try {
            Thread.sleep((long) (nanos / 1e6));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** The process that was started for a rank. */
    private static ProcessHandle ofRank(int rank) throws IOException {
        for (ProcessHandle child : ProcessHandle.current().children().toList()) {
            List<String> words =
                    List.of(
                            Files.readString(Path.of("/proc/" + child.pid() + "/cmdline"))
                                    .split("\0"));
            int main = words.indexOf(STAGE_PROCESS);
            if (main >= 0 && words.get(main + 2).equals("" + rank)) {
                return child;
            }
        }
        throw new IllegalStateException("no process of rank " + rank + " to kill");
    }

    private static Path configuration(RecoveryBenchmark.Row row, Path directory)
            throws IOException {
        Files.writeString(
                directory.resolve("text.txt"), "turbines turn and valves open. ".repeat(3000));
        String text =
                """
                run { name = recovery, steps = 1000000, directory = runs }
                model { context = 128, width = 128, layers = 4, heads = 4 }
                data { source = "text.txt" }
                batch { sequences = 8, micro-batches = 8 }
                pipeline { stages = %d, processes = per-stage }
                evaluation { every = 0 }
                checkpoint { every = 20 }
                recovery { %s, max-restarts = 1000 }
                """
                        .formatted(STAGES, row.settings());
        return Files.writeString(directory.resolve("recovery.conf"), text);
    }

    private static void delete(Path directory) throws IOException {
        try (Stream<Path> files = Files.walk(directory)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
    }
}
