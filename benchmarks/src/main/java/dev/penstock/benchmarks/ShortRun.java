package dev.penstock.benchmarks;

import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.launch.PipelineRun;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.launch.RunOptions;
import dev.penstock.runtime.safetensors.SafetensorsWriter;
import dev.penstock.runtime.safetensors.StoredTensor;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.stream.Stream;

/**
 * A few steps of training on random tokens, in this process and in a folder that is deleted
 * afterwards: what is learnt does not matter, only how fast and in how much memory.
 */
final class ShortRun {
    private ShortRun() {}

    /**
     * Trains to the end.
     *
     * @param summary computes the result from the run and all its steps before the folder is
     *     deleted
     */
    static <T> T of(
            TrainingMeasurement.Setup setup, BiFunction<RunAssembly, List<StepReport>, T> summary) {
        return of(
                setup.name(),
                setup.settings(),
                directory -> configuration(setup, directory),
                summary);
    }

    /** Writes what a run reads. */
    interface Preparation {
        /** Returns the configuration. */
        Path write(Path directory) throws IOException;
    }

    /**
     * Trains to the end.
     *
     * @param settings of {@code --set}
     * @param preparation writes the configuration and the data into the run's folder
     * @param summary as of {@link #of(TrainingMeasurement.Setup, BiFunction)}
     */
    static <T> T of(
            String name,
            List<String> settings,
            Preparation preparation,
            BiFunction<RunAssembly, List<StepReport>, T> summary) {
        var steps = new Steps();
        return of(
                name,
                settings,
                preparation,
                steps,
                assembly -> summary.apply(assembly, steps.reports));
    }

    /**
     * Trains to the end while somebody watches.
     *
     * @param summary computes the result before the folder is deleted
     */
    static <T> T watched(
            TrainingMeasurement.Setup setup, RunListener by, Function<RunAssembly, T> summary) {
        return of(
                setup.name(),
                setup.settings(),
                directory -> configuration(setup, directory),
                by,
                summary);
    }

    /**
     * Trains to the end while somebody watches.
     *
     * @param preparation as of {@link #of(String, List, Preparation, BiFunction)}
     */
    static <T> T watched(
            String name,
            List<String> settings,
            Preparation preparation,
            RunListener by,
            Function<RunAssembly, T> summary) {
        return of(name, settings, preparation, by, summary);
    }

    private static <T> T of(
            String name,
            List<String> settings,
            Preparation preparation,
            RunListener listener,
            Function<RunAssembly, T> summary) {
        try {
            Path directory = Files.createTempDirectory("penstock-benchmark-");
            try {
                LoadedConfig loaded =
                        ConfigLoader.loadWithOrigins(preparation.write(directory), settings);
                return train(name, loaded, directory, listener, summary);
            } finally {
                delete(directory);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static <T> T train(
            String name,
            LoadedConfig loaded,
            Path directory,
            RunListener listener,
            Function<RunAssembly, T> summary) {
        var options =
                new RunOptions(
                        RunOptions.newRunId("benchmark"),
                        directory,
                        Optional.empty(),
                        Optional.empty(),
                        Optional.empty(),
                        false);
        try (RunAssembly assembly = RunAssembly.of(loaded, options)) {
            RunOutcome outcome = new PipelineRun(assembly, listener, _ -> {}).run();
            if (!(outcome instanceof RunOutcome.Completed)) {
                throw new IllegalStateException(
                        name
                                + ": "
                                + (outcome instanceof RunOutcome.Failed(_, String reason)
                                        ? reason
                                        : outcome));
            }
            return summary.apply(assembly);
        }
    }

    private static Path configuration(TrainingMeasurement.Setup setup, Path directory)
            throws IOException {
        TrainingShape shape = setup.shape();
        var random = new SplittableRandom(7);
        long[] tokens = new long[setup.steps() * setup.sequences() * (shape.context() + 1)];
        for (int i = 0; i < tokens.length; i++) {
            tokens[i] = random.nextInt(shape.vocabulary());
        }
        List<Integer> dimensions = List.of(setup.steps(), setup.sequences(), shape.context() + 1);
        SafetensorsWriter.write(
                directory.resolve("tokens.safetensors"),
                Map.of(),
                List.of(StoredTensor.ofLongs("tokens", dimensions, tokens)));
        String text =
                """
                run { name = benchmark, steps = %d, directory = runs }
                model { context = %d, width = %d, layers = %d, heads = %d, vocabulary = %d, %s }
                data { source = "tokens.safetensors", format = tokens }
                batch { sequences = %d, micro-batches = %d }
                pipeline { stages = 1 }
                optimizer { learning-rate = 1e-4, warmup-steps = 0 }
                checkpoint { every = 0 }
                """
                        .formatted(
                                setup.steps(),
                                shape.context(),
                                shape.width(),
                                shape.layers(),
                                shape.heads(),
                                shape.vocabulary(),
                                shape.family(),
                                setup.sequences(),
                                setup.microBatches());
        return Files.writeString(directory.resolve("benchmark.conf"), text);
    }

    static void delete(Path directory) throws IOException {
        try (Stream<Path> files = Files.walk(directory)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
    }

    /** Collects all steps. */
    private static final class Steps implements RunListener {
        private final List<StepReport> reports = new ArrayList<>();

        @Override
        public void onStep(StepReport report) {
            reports.add(report);
        }
    }
}
