package dev.penstock.benchmarks;

import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.launch.PipelineRun;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.launch.RunOptions;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;

/**
 * A training with one process per stage, which runs until it is closed. Two of its processes may be
 * killed: after that, ranks live in processes that were not started for them.
 */
final class KilledTraining implements AutoCloseable {
    static final int MOST_KILLS = 2;

    private static final int STAGES = 4;
    private static final String STAGE_PROCESS = "dev.penstock.runtime.launch.StageProcess";

    private final String name;
    private final Path directory;
    private final RunAssembly assembly;
    private final RecoverySteps steps = new RecoverySteps();
    private final AtomicReference<Runnable> interrupt = new AtomicReference<>(() -> {});
    private final CompletableFuture<RunOutcome> ended = new CompletableFuture<>();
    private int kills;

    private KilledTraining(RecoveryBenchmark.Row row, Path directory) throws IOException {
        this.name = row.name();
        this.directory = directory;
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
        this.assembly = RunAssembly.of(loaded, options);
    }

    /** Starts the training in a new folder. */
    static KilledTraining start(RecoveryBenchmark.Row row) {
        try {
            var training = new KilledTraining(row, Files.createTempDirectory("penstock-recovery-"));
            Thread.ofPlatform() // the run itself needs the common pool's threads
                    .name("run")
                    .daemon()
                    .start(training::run);
            return training;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private void run() {
        try {
            ended.complete(new PipelineRun(assembly, steps, interrupt::set).run());
        } catch (RuntimeException e) {
            ended.complete(new RunOutcome.Failed(0, e.toString()));
        } finally {
            steps.end();
        }
    }

    /** Returns what the training has done so far. */
    RecoverySteps steps() {
        return steps;
    }

    /** Kills the next rank's process. */
    void kill() {
        ofRank((2 * kills + 2) % STAGES).destroyForcibly();
        kills++;
    }

    /** Returns the process that was started for a rank. */
    private static ProcessHandle ofRank(int rank) {
        try {
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
        } catch (IOException e) {
            throw new UncheckedIOException(e);
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

    /**
     * Ends the training after its current step.
     *
     * @throws IllegalStateException if it did not end in this way
     */
    @Override
    public void close() {
        interrupt.get().run();
        RunOutcome outcome = ended.join();
        assembly.close();
        try (Stream<Path> files = Files.walk(directory)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        if (!(outcome instanceof RunOutcome.Interrupted)) {
            throw new IllegalStateException(name + ": " + outcome);
        }
    }
}
