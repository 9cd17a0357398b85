package dev.penstock.runtime.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.model.shape.AdamWSettings;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.LearningRate;
import dev.penstock.runtime.model.shape.Precision;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.runtime.model.shape.ZeroSettings;
import dev.penstock.schedules.ir.Schedule;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Every family follows its golden run, whatever the layout and the device. */
class GoldenFamilyTest {
    private static final List<String> FAMILIES =
            List.of(
                    "llama",
                    "llama3",
                    "mistral",
                    "qwen2",
                    "qwen3",
                    "gpt2-variants",
                    "gpt3",
                    "retnet",
                    "retnet-mixed",
                    "bert-post-ln",
                    "bert-pre-ln");
    private static final AdamWSettings OPTIMIZER =
            new AdamWSettings(LearningRate.constant(0.01), 0.9, 0.95, 1e-8, 0.1, true);

    static Stream<Arguments> layouts() {
        return FAMILIES.stream()
                .flatMap(
                        family ->
                                Stream.of(DeviceSettings.Kind.REFERENCE, DeviceSettings.Kind.CPU)
                                        .flatMap(
                                                kind ->
                                                        Stream.of(
                                                                Arguments.of(
                                                                        family,
                                                                        kind,
                                                                        1,
                                                                        List.of(16)),
                                                                Arguments.of(
                                                                        family,
                                                                        kind,
                                                                        1,
                                                                        List.of(5, 3, 8)),
                                                                Arguments.of(
                                                                        family,
                                                                        kind,
                                                                        2,
                                                                        List.of(8, 8)),
                                                                Arguments.of(
                                                                        family,
                                                                        kind,
                                                                        3,
                                                                        List.of(16)),
                                                                Arguments.of(
                                                                        family,
                                                                        kind,
                                                                        3,
                                                                        List.of(4, 12)))))
                .filter(layout -> slices(layout) == 1 || !seesBothWays(layout.get()[0]));
    }

    private static int slices(Arguments layout) {
        return ((List<?>) layout.get()[3]).size();
    }

    /** A token needs the keys of later ones, so sequences stay whole. */
    private static boolean seesBothWays(Object family) {
        return family.toString().startsWith("bert");
    }

    private static List<Integer> twoSlices(GoldenFamily golden) {
        return golden.shape().block().encoder() == null ? List.of(8, 8) : List.of(16);
    }

    @ParameterizedTest(name = "{0} on {1}, {2} stages, slices {3}")
    @MethodSource("layouts")
    void lossesAndFirstGradientsAreTheGoldenOnes(
            String family, DeviceSettings.Kind kind, int stages, List<Integer> slices) {
        var golden = new GoldenFamily(family);
        BatchShape batch = new BatchShape(2, 2, slices, 8);
        Schedule order = Orders.oneForwardOneBackward(stages, 2, slices.size());
        try (var pipeline = pipeline(golden, kind, settings(golden, stages, batch), order)) {
            follow(golden, pipeline);
        }
    }

    static Stream<String> families() {
        return FAMILIES.stream();
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("families")
    void recomputedAndSplitBackwardsAreTheSame(String family) {
        var golden = new GoldenFamily(family);
        BatchShape batch = new BatchShape(2, 2, twoSlices(golden), 8);
        GptSettings plain = settings(golden, 2, batch);
        Schedule order = Orders.oneForwardOneBackward(2, 2, batch.slices());
        for (GptSettings settings : List.of(plain, TinyRuns.recomputing(plain, Set.of(0, 1)))) {
            for (Schedule each : List.of(order, Orders.split(order, 1))) {
                try (var pipeline =
                        pipeline(golden, DeviceSettings.Kind.REFERENCE, settings, each)) {
                    follow(golden, pipeline);
                }
            }
        }
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("families")
    void tensorShardsContextPartsAndShardedStatesAreTheSame(String family) throws Exception {
        var golden = new GoldenFamily(family);
        List<Integer> whole = List.of(16);
        List<Integer> sliced = twoSlices(golden);
        follow(golden, new RankGrid(1, 2, 1, 1), ZeroSettings.OFF, whole, false);
        follow(golden, new RankGrid(2, 2, 1, 1), ZeroSettings.OFF, sliced, true);
        follow(golden, new RankGrid(1, 1, 1, 2), zero3(), sliced, false);
        if (contextParts(golden) > 1) {
            follow(golden, new RankGrid(1, 1, 2, 1), ZeroSettings.OFF, whole, false);
            follow(golden, new RankGrid(2, 1, 2, 1), ZeroSettings.OFF, sliced, false);
            follow(golden, new RankGrid(1, 2, 4, 1), ZeroSettings.OFF, sliced, false);
        }
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("families")
    void everythingAtOnceIsTheSame(String family) throws Exception {
        var golden = new GoldenFamily(family);
        follow(
                golden,
                new RankGrid(2, 2, contextParts(golden), 2),
                zero3(),
                twoSlices(golden),
                true);
    }

    /** Attention to both sides has whole sequences. */
    private static int contextParts(GoldenFamily golden) {
        return golden.shape().block().encoder() == null ? 2 : 1;
    }

    private static ZeroSettings zero3() {
        return new ZeroSettings(3, ZeroSettings.Residency.LAYER, 1);
    }

    /**
     * @param sequence whether tensor shards divide rows
     */
    private static void follow(
            GoldenFamily golden,
            RankGrid grid,
            ZeroSettings zero,
            List<Integer> slices,
            boolean sequence)
            throws Exception {
        int microBatches = 2 / grid.data();
        var batch = new BatchShape(2, microBatches, slices, 4);
        GptSettings plain = settings(golden, grid.pipeline(), batch).onGrid(grid, zero);
        GptSettings settings = sequence ? TinyRuns.sequenceParallel(plain) : plain;
        Schedule order = Orders.oneForwardOneBackward(grid.pipeline(), microBatches, slices.size());
        try (var ranks = new GridDriver(settings, order, golden.batches(2), golden.initial())) {
            List<Double> losses = new ArrayList<>();
            for (int step = 1; step <= GoldenFamily.STEPS; step++) {
                losses.add(ranks.train(step));
                if (step == 1) {
                    assertGradients(golden, ranks.gradients());
                }
            }
            assertLosses(golden, losses);
        }
    }

    private static void follow(GoldenFamily golden, PipelineDriver pipeline) {
        List<Double> losses = new ArrayList<>();
        for (int step = 1; step <= GoldenFamily.STEPS; step++) {
            losses.add(pipeline.train(step));
            if (step == 1) {
                assertGradients(golden, pipeline.gradients());
            }
        }
        assertLosses(golden, losses);
    }

    static void assertLosses(GoldenFamily golden, List<Double> losses) {
        List<Double> expected = golden.numbers("loss_fp64");
        assertThat(losses).hasSameSizeAs(expected);
        for (int i = 0; i < losses.size(); i++) {
            assertThat(losses.get(i))
                    .as("loss of step %d", i + 1)
                    .isCloseTo(expected.get(i), within(2e-4));
        }
    }

    /** Relative to each tensor, and a little of all: gradients of keys' biases nearly vanish. */
    static void assertGradients(GoldenFamily golden, Map<String, float[]> gradients) {
        Map<String, double[]> found = golden.asPublished(gradients);
        Map<String, double[]> expected = golden.firstGradients();
        assertThat(found.keySet()).containsExactlyInAnyOrderElementsOf(expected.keySet());
        double all = 0;
        for (double[] tensor : expected.values()) {
            all += square(tensor);
        }
        double little = 1e-7 * Math.sqrt(all);
        expected.forEach(
                (name, tensor) -> {
                    double[] actual = Objects.requireNonNull(found.get(name), name);
                    double[] apart = new double[tensor.length];
                    for (int i = 0; i < apart.length; i++) {
                        apart[i] = actual[i] - tensor[i];
                    }
                    assertThat(Math.sqrt(square(apart)))
                            .as("distance of the gradient of %s", name)
                            .isLessThan(1e-5 * Math.sqrt(square(tensor)) + little);
                });
    }

    private static double square(double[] tensor) {
        double sum = 0;
        for (double value : tensor) {
            sum += value * value;
        }
        return sum;
    }

    private static PipelineDriver pipeline(
            GoldenFamily golden, DeviceSettings.Kind kind, GptSettings settings, Schedule order) {
        Device device = Devices.open(DeviceSettings.DEFAULTS.withKind(kind).withThreads(2));
        return new PipelineDriver(
                device,
                settings,
                order,
                golden.batches(settings.batch().sequences()),
                golden.initial());
    }

    static GptSettings settings(GoldenFamily golden, int stages, BatchShape batch) {
        return GptSettings.of(
                golden.shape(),
                StagePartition.byFlops(golden.shape(), stages),
                batch,
                Precision.FLOAT32,
                OPTIMIZER,
                42);
    }
}
