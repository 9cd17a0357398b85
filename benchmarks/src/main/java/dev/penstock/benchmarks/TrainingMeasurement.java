package dev.penstock.benchmarks;

import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.runtime.checkpoint.SafetensorsWriter;
import dev.penstock.runtime.checkpoint.StoredTensor;
import dev.penstock.runtime.config.ConfigLoader;
import dev.penstock.runtime.config.LoadedConfig;
import dev.penstock.runtime.launch.PipelineRun;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.launch.RunOptions;
import dev.penstock.runtime.metrics.PipelineMeter;
import dev.penstock.runtime.metrics.StepMeasure;
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
import java.util.stream.Stream;

/**
 * The median of the second half of a short run's steps.
 *
 * @param peakBytes device memory of the rank that holds most
 * @param heapBytesPerOp of the rank that allocates most
 * @param measuredOverPlanned device memory, the rank where it differs most
 */
record TrainingMeasurement(
        double tokensPerSecond,
        double stepSeconds,
        long peakBytes,
        double bubble,
        double efficiency,
        double heapBytesPerOp,
        double measuredOverPlanned) {

    /**
     * What is trained.
     *
     * @param sequences of a step, divided into the micro-batches
     * @param settings what differs from a plain run, as {@code --set} takes it
     */
    record Setup(
            String name,
            TrainingShape shape,
            int steps,
            int sequences,
            int microBatches,
            List<String> settings) {}

    static TrainingMeasurement of(Setup setup) {
        try {
            Path directory = Files.createTempDirectory("penstock-benchmark-");
            try {
                return measure(setup, directory);
            } finally {
                delete(directory);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static TrainingMeasurement measure(Setup setup, Path directory) throws IOException {
        LoadedConfig loaded =
                ConfigLoader.loadWithOrigins(configuration(setup, directory), setup.settings());
        var options =
                new RunOptions(
                        RunOptions.newRunId("benchmark"),
                        directory,
                        Optional.empty(),
                        Optional.empty(),
                        Optional.empty(),
                        false);
        var steps = new Steps();
        try (RunAssembly assembly = RunAssembly.of(loaded, options)) {
            RunOutcome outcome = new PipelineRun(assembly, steps, _ -> {}).run();
            if (!(outcome instanceof RunOutcome.Completed)) {
                throw new IllegalStateException(setup.name() + ": " + outcome);
            }
            return summary(assembly, steps.reports);
        }
    }

    private static TrainingMeasurement summary(RunAssembly assembly, List<StepReport> reports) {
        List<StepReport> steady =
                reports.subList(reports.size() / 2, reports.size()).stream()
                        .sorted(Comparator.comparingLong(r -> r.endNanos() - r.startNanos()))
                        .toList();
        StepReport median = steady.get((steady.size() - 1) / 2);
        StepMeasure measure =
                new PipelineMeter(assembly.plan().training(), assembly.plan().grid())
                        .measure(median);
        double seconds = (median.endNanos() - median.startNanos()) / 1e9;
        double heap = 0;
        double memory = 1;
        for (RankStep rank : median.ranks()) {
            heap = Math.max(heap, (double) rank.allocatedHeapBytes() / rank.opEndNanos().length);
            double ratio = (double) rank.peakBytes() / assembly.plannedBytes().get(rank.rank());
            memory = Math.abs(ratio - 1) > Math.abs(memory - 1) ? ratio : memory;
        }
        return new TrainingMeasurement(
                assembly.model().tokensPerStep() / seconds,
                seconds,
                median.ranks().stream().mapToLong(RankStep::peakBytes).max().orElse(0),
                measure.times().bubble(),
                measure.efficiency(),
                heap,
                memory);
    }

    /** Random tokens: what is learnt does not matter, only how fast. */
    private static Path configuration(Setup setup, Path directory) throws IOException {
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
                model { context = %d, width = %d, layers = %d, heads = %d, vocabulary = %d }
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
                                setup.sequences(),
                                setup.microBatches());
        return Files.writeString(directory.resolve("benchmark.conf"), text);
    }

    private static void delete(Path directory) throws IOException {
        try (Stream<Path> files = Files.walk(directory)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
    }

    /** Keeps all steps. */
    private static final class Steps implements RunListener {
        private final List<StepReport> reports = new ArrayList<>();

        @Override
        public void onStep(StepReport report) {
            reports.add(report);
        }
    }
}
