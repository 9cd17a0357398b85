package dev.penstock.runtime.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.model.shape.AdamWSettings;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.FineTuning;
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
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** An adapter follows the golden run of PEFT's, whatever the layout and the device. */
class GoldenAdapterTest {
    private final GoldenAdapter golden = new GoldenAdapter();

    static Stream<Arguments> layouts() {
        return Stream.of(DeviceSettings.Kind.REFERENCE, DeviceSettings.Kind.CPU)
                .flatMap(
                        kind ->
                                Stream.of(
                                        Arguments.of(kind, 1, List.of(16)),
                                        Arguments.of(kind, 1, List.of(5, 3, 8)),
                                        Arguments.of(kind, 2, List.of(8, 8)),
                                        Arguments.of(kind, 3, List.of(16)),
                                        Arguments.of(kind, 3, List.of(4, 12))));
    }

    @ParameterizedTest(name = "on {0}, {1} stages, slices {2}")
    @MethodSource("layouts")
    void lossesGradientsNormsAndWeightsAreTheGoldenOnes(
            DeviceSettings.Kind kind, int stages, List<Integer> slices) {
        BatchShape batch = new BatchShape(2, 2, slices, 8);
        Schedule order = Orders.oneForwardOneBackward(stages, 2, slices.size());
        try (var pipeline = pipeline(kind, settings(stages, batch), order)) {
            follow(pipeline);
        }
    }

    @Test
    void clippedRunsAreTheGoldenOnes() {
        BatchShape batch = new BatchShape(2, 2, List.of(16), 8);
        Schedule order = Orders.oneForwardOneBackward(2, 2, 1);
        try (var pipeline =
                pipeline(DeviceSettings.Kind.CPU, settings(2, batch), order).clippingTo(0.5)) {
            List<Double> losses = new ArrayList<>();
            for (int step = 1; step <= GoldenAdapter.STEPS; step++) {
                losses.add(pipeline.train(step));
            }
            assertNear(losses, "loss_fp64_clip0_5", 2e-4);
        }
    }

    @Test
    void recomputedAndSplitBackwardsAreTheSame() {
        BatchShape batch = new BatchShape(2, 2, List.of(8, 8), 8);
        GptSettings plain = settings(2, batch);
        Schedule order = Orders.oneForwardOneBackward(2, 2, 2);
        for (GptSettings settings : List.of(plain, TinyRuns.recomputing(plain, Set.of(0, 1)))) {
            for (Schedule each : List.of(order, Orders.split(order, 1))) {
                try (var pipeline = pipeline(DeviceSettings.Kind.REFERENCE, settings, each)) {
                    follow(pipeline);
                }
            }
        }
    }

    static Stream<Arguments> grids() {
        return Stream.of(
                Arguments.of(new RankGrid(1, 1, 2, 1), 0),
                Arguments.of(new RankGrid(2, 1, 2, 1), 0),
                Arguments.of(new RankGrid(1, 1, 1, 2), 0),
                Arguments.of(new RankGrid(1, 1, 1, 2), 1),
                Arguments.of(new RankGrid(2, 1, 1, 2), 2),
                Arguments.of(new RankGrid(1, 1, 1, 2), 3),
                Arguments.of(new RankGrid(1, 2, 1, 1), 0),
                Arguments.of(new RankGrid(2, 2, 1, 2), 1),
                Arguments.of(new RankGrid(2, 2, 2, 2), 3));
    }

    @ParameterizedTest(name = "{0}, ZeRO {1}")
    @MethodSource("grids")
    void shardsContextPartsReplicasAndWhatTheyDivideAreTheSame(RankGrid grid, int zero)
            throws Exception {
        int microBatches = 2 / grid.data();
        var batch = new BatchShape(2, microBatches, List.of(8, 8), 4);
        GptSettings settings =
                settings(grid.pipeline(), batch)
                        .onGrid(grid, new ZeroSettings(zero, ZeroSettings.Residency.LAYER, 1));
        Schedule order = Orders.oneForwardOneBackward(grid.pipeline(), microBatches, 2);
        try (var ranks = new GridDriver(settings, order, golden.batches(2), golden.initial())) {
            List<Double> losses = new ArrayList<>();
            for (int step = 1; step <= GoldenAdapter.STEPS; step++) {
                losses.add(ranks.train(step));
                if (step == 1) {
                    assertNear(ranks.gradients(), golden.firstGradients(), 1e-5);
                }
            }
            assertNear(losses, "loss_fp64", 2e-4);
        }
    }

    /**
     * An integer is off by half a step of its row at most, 0.4 % of the row's largest element, and
     * losses of about 4.2 by a hundredth at most; layouts differ by what sums in F32 do.
     */
    @ParameterizedTest(name = "{0}, ZeRO {1}")
    @MethodSource("grids")
    void besideIntegersLossesAreNearTheGoldenOnesInEveryLayout(RankGrid grid, int zero)
            throws Exception {
        int microBatches = 2 / grid.data();
        var batch = new BatchShape(2, microBatches, List.of(8, 8), 4);
        GptSettings settings =
                settings(grid.pipeline(), batch)
                        .onGrid(grid, new ZeroSettings(zero, ZeroSettings.Residency.LAYER, 1))
                        .training(golden.fineTuning().keeping(FineTuning.Frozen.INT8));
        Schedule order = Orders.oneForwardOneBackward(grid.pipeline(), microBatches, 2);
        try (var ranks = new GridDriver(settings, order, golden.batches(2), golden.initial())) {
            List<Double> losses = new ArrayList<>();
            for (int step = 1; step <= GoldenAdapter.STEPS; step++) {
                losses.add(ranks.train(step));
            }
            assertNear(losses, "loss_fp64", 1e-2);
            List<Double> ofOneRank = lossesBesideIntegers();
            for (int i = 0; i < losses.size(); i++) {
                assertThat(losses.get(i)).isCloseTo(ofOneRank.get(i), within(2e-6));
            }
        }
    }

    private List<Double> lossesBesideIntegers() {
        GptSettings settings =
                settings(1, new BatchShape(2, 2, List.of(8, 8), 4))
                        .training(golden.fineTuning().keeping(FineTuning.Frozen.INT8));
        Schedule order = Orders.oneForwardOneBackward(1, 2, 2);
        try (var pipeline = pipeline(DeviceSettings.Kind.REFERENCE, settings, order)) {
            List<Double> losses = new ArrayList<>();
            for (int step = 1; step <= GoldenAdapter.STEPS; step++) {
                losses.add(pipeline.train(step));
            }
            return losses;
        }
    }

    private void follow(PipelineDriver pipeline) {
        Map<String, float[]> before = pipeline.state();
        List<Double> losses = new ArrayList<>();
        List<Double> norms = new ArrayList<>();
        for (int step = 1; step <= GoldenAdapter.STEPS; step++) {
            losses.add(pipeline.train(step));
            norms.add(pipeline.gradientNorm());
            if (step == 1) {
                assertNear(pipeline.gradients(), golden.firstGradients(), 1e-5);
            }
        }
        assertNear(losses, "loss_fp64", 2e-4);
        assertNear(norms, "grad_norm_fp64", 2e-4);
        assertLast(before, pipeline.state());
    }

    /** Frozen weights have kept their bits and have no moments. */
    private void assertLast(Map<String, float[]> before, Map<String, float[]> after) {
        Map<String, float[]> trained = golden.last();
        Map<String, float[]> adapters = new java.util.TreeMap<>();
        after.forEach(
                (name, values) -> {
                    if (trained.containsKey(name)) {
                        adapters.put(name, values);
                    } else if (name.startsWith("optimizer.")) {
                        assertThat(trained).containsKey(name.substring("optimizer.m.".length()));
                    } else {
                        assertThat(values).as(name).isEqualTo(before.get(name));
                    }
                });
        assertNear(adapters, trained, 1e-4);
    }

    private void assertNear(List<Double> numbers, String key, double most) {
        List<Double> expected = golden.numbers(key);
        assertThat(numbers).hasSameSizeAs(expected);
        for (int i = 0; i < numbers.size(); i++) {
            assertThat(numbers.get(i))
                    .as("%s of step %d", key, i + 1)
                    .isCloseTo(expected.get(i), within(most));
        }
    }

    private static void assertNear(
            Map<String, float[]> found, Map<String, float[]> expected, double relative) {
        assertThat(found.keySet()).containsExactlyInAnyOrderElementsOf(expected.keySet());
        expected.forEach(
                (name, tensor) -> {
                    float[] actual = Objects.requireNonNull(found.get(name));
                    double apart = 0;
                    double size = 0;
                    for (int i = 0; i < tensor.length; i++) {
                        apart += Math.pow(actual[i] - tensor[i], 2);
                        size += Math.pow(tensor[i], 2);
                    }
                    assertThat(Math.sqrt(apart))
                            .as("distance of %s", name)
                            .isLessThan(relative * Math.sqrt(size));
                });
    }

    private PipelineDriver pipeline(
            DeviceSettings.Kind kind, GptSettings settings, Schedule order) {
        return new PipelineDriver(
                Devices.open(DeviceSettings.DEFAULTS.withKind(kind).withThreads(2)),
                settings,
                order,
                golden.batches(settings.batch().sequences()),
                golden.initial());
    }

    private GptSettings settings(int stages, BatchShape batch) {
        var shape = golden.base().shape();
        return GptSettings.of(
                        shape,
                        StagePartition.byFlops(shape, stages),
                        batch,
                        Precision.FLOAT32,
                        new AdamWSettings(LearningRate.constant(0.01), 0.9, 0.95, 1e-8, 0, true),
                        42)
                .training(golden.fineTuning());
    }
}
