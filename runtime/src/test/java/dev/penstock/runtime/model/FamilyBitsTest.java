package dev.penstock.runtime.model;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.Precision;
import dev.penstock.runtime.model.shape.ZeroSettings;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.InsertRecompute;
import java.nio.IntBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** No family's results depend on the layout of a run in a single bit. */
class FamilyBitsTest {
    private static final int STEPS = 2;
    private static final int MICRO_BATCHES = 2;
    private static final List<Integer> WHOLE = List.of(64);

    static Stream<String> families() {
        return TinyFamilies.NAMES.stream();
    }

    static Stream<Arguments> familiesAndPrecisions() {
        return families()
                .flatMap(
                        family ->
                                TinyRuns.ON_CPUS.stream()
                                        .map(precision -> Arguments.of(family, precision)));
    }

    @ParameterizedTest(name = "{0}, {1}")
    @MethodSource("familiesAndPrecisions")
    void slicesStagesOrdersAndThreadsDoNotChangeABit(String family, Precision precision) {
        Layout one = new Layout(family, precision, 1, WHOLE, 1);
        Map<String, Object> bits = one.run(Orders.oneForwardOneBackward(1, MICRO_BATCHES, 1));

        for (Layout other :
                List.of(
                        new Layout(family, precision, 2, WHOLE, 2),
                        new Layout(family, precision, 1, List.of(32, 32), 2),
                        new Layout(family, precision, 3, List.of(16, 48), 1))) {
            Schedule order =
                    Orders.oneForwardOneBackward(
                            other.stages(), MICRO_BATCHES, other.slices().size());
            assertThat(other.run(order)).as("%s", other).isEqualTo(bits);
        }
        Layout sliced = new Layout(family, precision, 2, List.of(32, 16, 16), 2);
        assertThat(sliced.run(Orders.gpipe(2, MICRO_BATCHES, 3))).isEqualTo(bits);
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("families")
    void recomputedAndSplitBackwardsDoNotChangeABit(String family) {
        Layout layout = new Layout(family, Precision.BF16, 2, List.of(32, 32), 1);
        Schedule order = Orders.oneForwardOneBackward(2, MICRO_BATCHES, 2);
        Map<String, Object> bits = layout.run(order);

        assertThat(layout.run(Orders.split(order, 1))).isEqualTo(bits);
        assertThat(layout.run(InsertRecompute.into(Orders.split(order, 2)))).isEqualTo(bits);
        assertThat(layout.run(order, Set.of(0, 1))).isEqualTo(bits);
        assertThat(layout.run(Orders.split(order, 1), Set.of(1))).isEqualTo(bits);
    }

    /** Whatever replicas divide, and in however many stages and slices they work. */
    @ParameterizedTest(name = "{0}")
    @MethodSource("families")
    void whatReplicasDivideDoesNotChangeABit(String family) throws Exception {
        Map<String, Object> bits = replicated(family, 1, List.of(16), ZeroSettings.OFF);

        for (int zero = 1; zero <= 3; zero++) {
            var divided = new ZeroSettings(zero, ZeroSettings.Residency.LAYER, 1);
            assertThat(replicated(family, 1 + zero % 2, List.of(8, 8), divided))
                    .as("ZeRO %d", zero)
                    .isEqualTo(bits);
        }
    }

    private static Map<String, Object> replicated(
            String family, int stages, List<Integer> slices, ZeroSettings zero) throws Exception {
        var golden = new GoldenFamily(family);
        GptSettings settings =
                TinyRuns.settings(golden.shape(), stages, new BatchShape(1, 2, slices, 4))
                        .onGrid(new RankGrid(stages, 1, 1, 2), zero);
        Schedule order = Orders.oneForwardOneBackward(stages, 2, slices.size());
        Map<String, Object> outcome = new TreeMap<>();
        try (var ranks = new GridDriver(settings, order, golden.batches(1), golden.initial())) {
            for (int step = 1; step <= STEPS; step++) {
                outcome.put("loss " + step, ranks.train(step));
            }
            ranks.gradients().forEach((name, values) -> outcome.put(name, bits(values)));
        }
        return outcome;
    }

    /** How the processor computes a model. */
    private record Layout(
            String family, Precision precision, int stages, List<Integer> slices, int threads) {

        Map<String, Object> run(Schedule order) {
            return run(order, Set.of());
        }

        /** Everything that a run yields, as bits. */
        Map<String, Object> run(Schedule order, Set<Integer> recomputed) {
            ModelShape shape = TinyFamilies.shape(family);
            var batch = new BatchShape(2, MICRO_BATCHES, slices, 16);
            GptSettings settings = TinyRuns.settings(shape, stages, batch, precision);
            DeviceSettings cpu =
                    DeviceSettings.DEFAULTS.withKind(DeviceSettings.Kind.CPU).withThreads(threads);
            try (var pipeline =
                    new PipelineDriver(
                                    Devices.open(cpu),
                                    TinyRuns.recomputing(settings, recomputed),
                                    order,
                                    TinyRuns.tokens(shape.vocabulary()),
                                    TinyRuns.roughWeights())
                            .clippingTo(1)) {
                Map<String, Object> outcome = new TreeMap<>();
                for (int step = 1; step <= STEPS; step++) {
                    outcome.put("loss " + step, pipeline.train(step));
                    outcome.put("norm " + step, pipeline.gradientNorm());
                }
                pipeline.gradients().forEach((name, g) -> outcome.put("g " + name, bits(g)));
                pipeline.state().forEach((name, values) -> outcome.put(name, bits(values)));
                outcome.put("evaluated", pipeline.evaluate(0));
                return outcome;
            }
        }
    }

    /** Compared by content. */
    private static IntBuffer bits(float[] values) {
        int[] bits = new int[values.length];
        Arrays.setAll(bits, i -> Float.floatToRawIntBits(values[i]));
        return IntBuffer.wrap(bits);
    }
}
