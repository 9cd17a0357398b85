package dev.penstock.runtime.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.data.BatchSource;
import dev.penstock.runtime.model.parameters.CounterRandom;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.ZeroSettings;
import dev.penstock.schedules.ir.Schedule;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.IntBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Several documents in a row, each for itself, and targets that do not count. */
class PackedRowsTest {
    private static final DeviceSettings CPU =
            DeviceSettings.DEFAULTS.withKind(DeviceSettings.Kind.CPU).withThreads(2);

    static Stream<Arguments> layouts() {
        return Stream.of("packed", "packed-gpt2")
                .flatMap(
                        golden ->
                                Stream.of(
                                        Arguments.of(golden, "REFERENCE", 1, List.of(16), 8),
                                        Arguments.of(golden, "REFERENCE", 3, List.of(4, 12), 4),
                                        Arguments.of(golden, "CPU", 1, List.of(16), 8),
                                        Arguments.of(golden, "CPU", 2, List.of(8, 8), 8),
                                        Arguments.of(golden, "CPU", 2, List.of(5, 3, 8), 8)));
    }

    @ParameterizedTest(name = "{0} on {1}, {2} stages, slices {3}, grid of {4}")
    @MethodSource("layouts")
    void lossesAndFirstGradientsAreTheGoldenOnes(
            String name, DeviceSettings.Kind kind, int stages, List<Integer> slices, int grid) {
        var golden = new GoldenFamily(name);
        GptSettings settings =
                GoldenFamilyTest.settings(golden, stages, new BatchShape(2, 2, slices, grid));
        Schedule order = Orders.oneForwardOneBackward(stages, 2, slices.size());
        try (var pipeline =
                new PipelineDriver(
                        Devices.open(DeviceSettings.DEFAULTS.withKind(kind).withThreads(2)),
                        settings,
                        order,
                        golden.batches(2),
                        golden.initial())) {
            List<Double> losses = new ArrayList<>();
            for (int step = 1; step <= GoldenFamily.STEPS; step++) {
                losses.add(pipeline.train(step));
                if (step == 1) {
                    GoldenFamilyTest.assertGradients(golden, pipeline.gradients());
                }
            }
            GoldenFamilyTest.assertLosses(golden, losses);
        }
    }

    @ParameterizedTest(name = "{0}")
    @ValueSource(strings = {"packed", "packed-gpt2"})
    void shardsAndReplicasFollowTheGoldenRun(String name) throws Exception {
        var golden = new GoldenFamily(name);
        for (RankGrid grid : List.of(new RankGrid(2, 2, 1, 1), new RankGrid(1, 2, 1, 2))) {
            int microBatches = 2 / grid.data();
            var batch = new BatchShape(2, microBatches, List.of(8, 8), 4);
            int zero = grid.data() > 1 ? 3 : 0;
            GptSettings settings =
                    TinyRuns.sequenceParallel(
                            GoldenFamilyTest.settings(golden, grid.pipeline(), batch)
                                    .onGrid(
                                            grid,
                                            new ZeroSettings(
                                                    zero, ZeroSettings.Residency.LAYER, 1)));
            Schedule order = Orders.oneForwardOneBackward(grid.pipeline(), microBatches, 2);
            try (var ranks = new GridDriver(settings, order, golden.batches(2), golden.initial())) {
                List<Double> losses = new ArrayList<>();
                for (int step = 1; step <= GoldenFamily.STEPS; step++) {
                    losses.add(ranks.train(step));
                }
                GoldenFamilyTest.assertLosses(golden, losses);
            }
        }
    }

    @Test
    void contextPartsAreRefused() {
        var golden = new GoldenFamily("packed");
        GptSettings settings =
                GoldenFamilyTest.settings(golden, 1, new BatchShape(2, 2, List.of(16), 4))
                        .onGrid(new RankGrid(1, 1, 2, 1), ZeroSettings.OFF);
        Schedule order = Orders.oneForwardOneBackward(1, 2, 1);

        assertThatThrownBy(
                        () -> new GridDriver(settings, order, golden.batches(2), golden.initial()))
                .hasMessageContaining("expected whole sequences where documents share rows");
    }

    /** Documents of a row of 64 tokens, and as many rows with one document each. */
    @ParameterizedTest(name = "{0}")
    @ValueSource(strings = {"mistral", "qwen3", "gpt2-variants", "retnet", "retnet-mixed"})
    void packedDocumentsAreTheSameAsDocumentsApart(String family) {
        ModelShape shape = TinyFamilies.shape(family);
        List<Integer> lengths = List.of(1, 30, 17, 2, 15);
        var together = new Rows(1, lengths, 2, shape.vocabulary());
        var apart = new Rows(lengths.size(), lengths, 2, shape.vocabulary());
        Schedule order = Orders.oneForwardOneBackward(1, 2, 1);
        var one = new BatchShape(1, 2, List.of(64), 16);
        var several = new BatchShape(lengths.size(), 2, List.of(64), 16);
        try (var packed =
                        new PipelineDriver(
                                Devices.open(CPU),
                                TinyRuns.settings(shape, 1, one),
                                order,
                                together,
                                TinyRuns.roughWeights());
                var separate =
                        new PipelineDriver(
                                Devices.open(CPU),
                                TinyRuns.settings(shape, 1, several),
                                order,
                                apart,
                                TinyRuns.roughWeights())) {
            assertThat(packed.train(1)).isCloseTo(separate.train(1), within(1e-6));
            Map<String, float[]> expected = separate.gradients();
            packed.gradients()
                    .forEach(
                            (name, actual) ->
                                    assertClose(
                                            name,
                                            actual,
                                            Objects.requireNonNull(expected.get(name))));
            assertThat(packed.evaluate(0)).isCloseTo(separate.evaluate(0), within(1e-5));
        }
    }

    private static void assertClose(String name, float[] actual, float[] expected) {
        double apart = 0;
        double norm = 0;
        for (int i = 0; i < actual.length; i++) {
            apart += Math.pow((double) actual[i] - expected[i], 2);
            norm += Math.pow(expected[i], 2);
        }
        assertThat(Math.sqrt(apart)).as(name).isLessThan(1e-5 * Math.sqrt(norm) + 1e-6);
    }

    /**
     * The same documents in one row of each micro-batch, or in a row each whose rest does not
     * count. Every third token is no target.
     */
    private record Rows(int rows, List<Integer> lengths, int microBatches, int vocabulary)
            implements BatchSource {
        @Override
        public boolean packed() {
            return rows == 1;
        }

        @Override
        public boolean masked() {
            return true;
        }

        @Override
        public void read(StepKind kind, long step, int microBatch, int[] tokens) {
            CounterRandom random = CounterRandom.of(step, kind + " " + microBatch);
            Arrays.fill(tokens, 0);
            int number = 0;
            for (int document = 0; document < lengths.size(); document++) {
                for (int i = 0; i < lengths.get(document); i++) {
                    tokens[at(document) + i] = (int) (random.uniform(number++) * vocabulary);
                }
            }
        }

        private int at(int document) {
            return rows == 1
                    ? lengths.subList(0, document).stream().mapToInt(n -> n).sum()
                    : document * 65;
        }

        @Override
        public void marks(StepKind kind, long step, int microBatch, byte[] marks) {
            Arrays.fill(marks, UNCOUNTED);
            for (int document = 0; document < lengths.size(); document++) {
                for (int i = 0; i < lengths.get(document); i++) {
                    marks[at(document) + i] = i % 3 == 2 ? UNCOUNTED : 0;
                }
                marks[at(document)] = BEGINS;
            }
        }
    }

    /** The gradient of a masked loss along itself is what the loss changes by. */
    @ParameterizedTest(name = "{0}")
    @ValueSource(strings = {"llama", "retnet-mixed"})
    void theGradientIsThatOfTheMeanOverWhatCounts(String family) {
        ModelShape shape = TinyFamilies.shape(family);
        var rows = new Rows(1, List.of(20, 3, 41), 2, shape.vocabulary());
        double before;
        Map<String, float[]> gradients;
        GptSettings settings =
                TinyRuns.settings(shape, 2, new BatchShape(1, 2, List.of(32, 32), 16));
        Schedule order = Orders.oneForwardOneBackward(2, 2, 2);
        try (var driver = new PipelineDriver(settings, order, rows, TinyRuns.roughWeights())) {
            before = driver.train(1);
            gradients = driver.gradients();
        }
        double square = 0;
        for (float[] gradient : gradients.values()) {
            for (float g : gradient) {
                square += (double) g * g;
            }
        }
        double way = 2e-3 / Math.sqrt(square);
        double[] losses = new double[2];
        for (int side = 0; side < 2; side++) {
            double step = side == 0 ? way : -way;
            try (var driver =
                    new PipelineDriver(
                            settings,
                            order,
                            rows,
                            (name, piece, destination) -> {
                                boolean there =
                                        TinyRuns.roughWeights().fill(name, piece, destination);
                                float[] gradient = gradients.get(name);
                                if (there && gradient != null) {
                                    piece.walk(
                                            (inWhole, inPiece, count) ->
                                                    add(
                                                            destination,
                                                            inPiece,
                                                            gradient,
                                                            inWhole,
                                                            count,
                                                            step));
                                }
                                return there;
                            })) {
                losses[side] = driver.train(1);
            }
        }
        assertThat(losses[0]).isGreaterThan(before);
        assertThat((losses[0] - losses[1]) / (2 * way)).isCloseTo(square, within(2e-3 * square));
    }

    private static void add(
            MemorySegment weights, long at, float[] gradient, long from, long count, double step) {
        for (long i = 0; i < count; i++) {
            float was = weights.getAtIndex(ValueLayout.JAVA_FLOAT, at + i);
            weights.setAtIndex(
                    ValueLayout.JAVA_FLOAT,
                    at + i,
                    (float) (was + step * gradient[Math.toIntExact(from + i)]));
        }
    }

    @ParameterizedTest(name = "{0}")
    @ValueSource(strings = {"mistral", "qwen3", "gpt2-variants", "retnet", "retnet-mixed"})
    void stagesSlicesOrdersAndThreadsDoNotChangeABit(String family) {
        Map<String, Object> bits = bits(family, 1, 1, List.of(64), Set.of(), false);

        assertThat(bits(family, 2, 2, List.of(64), Set.of(), false)).isEqualTo(bits);
        assertThat(bits(family, 1, 2, List.of(32, 32), Set.of(), false)).isEqualTo(bits);
        assertThat(bits(family, 3, 1, List.of(16, 48), Set.of(), true)).isEqualTo(bits);
        assertThat(bits(family, 2, 2, List.of(32, 16, 16), Set.of(0, 1), false)).isEqualTo(bits);
    }

    /** Everything that a run yields, as bits. */
    private static Map<String, Object> bits(
            String family,
            int stages,
            int threads,
            List<Integer> slices,
            Set<Integer> recomputed,
            boolean split) {
        ModelShape shape = TinyFamilies.shape(family);
        var batch = new BatchShape(2, 2, slices, 16);
        Schedule order = Orders.oneForwardOneBackward(stages, 2, slices.size());
        try (var pipeline =
                new PipelineDriver(
                                Devices.open(CPU.withThreads(threads)),
                                TinyRuns.recomputing(
                                        TinyRuns.settings(shape, stages, batch), recomputed),
                                split ? Orders.split(order, 1) : order,
                                new Borders(TinyRuns.tokens(shape.vocabulary())),
                                TinyRuns.roughWeights())
                        .clippingTo(1)) {
            Map<String, Object> outcome = new TreeMap<>();
            for (int step = 1; step <= 2; step++) {
                outcome.put("loss " + step, pipeline.train(step));
                outcome.put("norm " + step, pipeline.gradientNorm());
            }
            pipeline.gradients().forEach((name, g) -> outcome.put("g " + name, bits(g)));
            pipeline.state().forEach((name, values) -> outcome.put(name, bits(values)));
            outcome.put("evaluated", pipeline.evaluate(0));
            return outcome;
        }
    }

    private static IntBuffer bits(float[] values) {
        int[] bits = new int[values.length];
        Arrays.setAll(bits, i -> Float.floatToRawIntBits(values[i]));
        return IntBuffer.wrap(bits);
    }

    /** Other tokens with borders and masks that follow from their places. */
    private record Borders(BatchSource tokens) implements BatchSource {
        @Override
        public void read(StepKind kind, long step, int microBatch, int[] into) {
            tokens.read(kind, step, microBatch, into);
        }

        @Override
        public boolean packed() {
            return true;
        }

        @Override
        public boolean masked() {
            return true;
        }

        @Override
        public void marks(StepKind kind, long step, int microBatch, byte[] marks) {
            CounterRandom random = CounterRandom.of(step, kind + " marks " + microBatch);
            for (int i = 0; i < marks.length; i++) {
                boolean begins = random.uniform(i) < 0.08;
                boolean counts = random.uniform(i + 5000L) < 0.8;
                marks[i] = (byte) ((begins ? BEGINS : 0) + (counts ? 0 : UNCOUNTED));
            }
        }
    }
}
