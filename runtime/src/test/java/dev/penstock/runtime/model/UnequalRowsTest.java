package dev.penstock.runtime.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.data.BatchSource;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.ZeroSettings;
import dev.penstock.schedules.ir.Schedule;
import java.nio.IntBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Micro-batches whose sequences are shorter than the context. */
class UnequalRowsTest {
    private static final int CONTEXT = 64;
    private static final int MICRO_BATCHES = 3;

    private static final DeviceSettings CPU =
            DeviceSettings.DEFAULTS.withKind(DeviceSettings.Kind.CPU).withThreads(2);

    @ParameterizedTest(name = "{0}")
    @ValueSource(strings = {"mistral", "qwen3", "gpt2-variants", "retnet", "retnet-mixed"})
    void shorterMicroBatchesAreTheSameAsPaddedOnes(String family) {
        Map<String, Object> padded = outcome(CPU, family, true, 1, List.of(CONTEXT), 16);
        Map<String, Object> shorter = outcome(CPU, family, false, 2, List.of(CONTEXT), 16);

        assertThat(shorter.keySet()).isEqualTo(padded.keySet());
        padded.forEach((name, expected) -> assertClose(name, of(shorter, name), expected));
    }

    @ParameterizedTest
    @EnumSource(
            value = DeviceSettings.Kind.class,
            names = {"REFERENCE", "CPU"})
    void slicesOfShorterSequencesAreTheSameToo(DeviceSettings.Kind kind) {
        DeviceSettings device = DeviceSettings.DEFAULTS.withKind(kind).withThreads(2);
        Map<String, Object> padded = outcome(device, "qwen3", true, 1, List.of(CONTEXT), 4);
        Map<String, Object> sliced = outcome(device, "qwen3", false, 2, List.of(32, 32), 4);

        padded.forEach((name, expected) -> assertClose(name, of(sliced, name), expected));
    }

    private static Object of(Map<String, Object> outcome, String name) {
        return Objects.requireNonNull(outcome.get(name));
    }

    private static void assertClose(String name, Object actual, Object expected) {
        if (expected instanceof Double number) {
            assertThat((double) actual).as(name).isCloseTo(number, within(1e-6 * (1 + number)));
            return;
        }
        float[] are = floats(actual);
        float[] wanted = floats(expected);
        double apart = 0;
        double norm = 0;
        for (int i = 0; i < wanted.length; i++) {
            apart += Math.pow((double) are[i] - wanted[i], 2);
            norm += Math.pow(wanted[i], 2);
        }
        assertThat(Math.sqrt(apart)).as(name).isLessThan(1e-5 * Math.sqrt(norm) + 1e-6);
    }

    private static float[] floats(Object bits) {
        int[] ints = ((IntBuffer) bits).array();
        float[] floats = new float[ints.length];
        for (int i = 0; i < ints.length; i++) {
            floats[i] = Float.intBitsToFloat(ints[i]);
        }
        return floats;
    }

    @ParameterizedTest(name = "{0}")
    @ValueSource(strings = {"mistral", "qwen3", "gpt2-variants", "retnet", "retnet-mixed"})
    void stagesSlicesOrdersAndThreadsDoNotChangeABit(String family) {
        Map<String, Object> bits = bits(family, 1, 1, List.of(64), Set.of(), false);

        assertThat(bits(family, 2, 2, List.of(64), Set.of(), false)).isEqualTo(bits);
        assertThat(bits(family, 1, 2, List.of(32, 32), Set.of(), false)).isEqualTo(bits);
        assertThat(bits(family, 3, 1, List.of(64), Set.of(0, 2), true)).isEqualTo(bits);
        assertThat(bits(family, 2, 2, List.of(16, 32, 16), Set.of(0, 1), false)).isEqualTo(bits);
    }

    /** Longer padding adds zeros to sums, which are no other sums. */
    @Test
    void paddingDoesNotChangeABitEither() {
        Map<String, Object> shorter = outcome(CPU, "qwen3", false, 1, List.of(CONTEXT), 4);
        Map<String, Object> padded = outcome(CPU, "qwen3", true, 1, List.of(CONTEXT), 4);

        assertThat(shorter).isEqualTo(padded);
    }

    /** Masks follow tokens, and what padding is dropped of reaches nobody. */
    @ParameterizedTest(name = "{0}")
    @ValueSource(strings = {"qwen3", "gpt2-variants"})
    void dropoutIsTheSameForShorterAndPaddedRows(String family) {
        ModelShape shape = TinyFamilies.shape(family);
        GptSettings one =
                TinyRuns.settings(shape, 1, new BatchShape(2, MICRO_BATCHES, List.of(64), 4))
                        .dropping(0.3);
        GptSettings two =
                TinyRuns.settings(shape, 2, new BatchShape(2, MICRO_BATCHES, List.of(32, 32), 4))
                        .dropping(0.3);
        var shorter = new Rows(TinyRuns.tokens(shape.vocabulary()), false);
        var padded = new Rows(TinyRuns.tokens(shape.vocabulary()), true);
        Schedule whole = Orders.oneForwardOneBackward(1, MICRO_BATCHES, 1);
        Schedule split = Orders.split(Orders.oneForwardOneBackward(2, MICRO_BATCHES, 2), 1);

        Map<String, Object> outcome = outcome(CPU, one, whole, shorter);

        assertThat(outcome(CPU, one, whole, padded)).isEqualTo(outcome);
        assertThat(outcome(CPU, two, split, shorter)).isEqualTo(outcome);
        assertThat(outcome.get("loss 1"))
                .isNotEqualTo(outcome(CPU, one.dropping(0), whole, shorter).get("loss 1"));
    }

    private static Map<String, Object> bits(
            String family,
            int stages,
            int threads,
            List<Integer> slices,
            Set<Integer> recomputed,
            boolean split) {
        ModelShape shape = TinyFamilies.shape(family);
        var batch = new BatchShape(2, MICRO_BATCHES, slices, 4);
        GptSettings settings =
                TinyRuns.recomputing(TinyRuns.settings(shape, stages, batch), recomputed);
        Schedule order = Orders.oneForwardOneBackward(stages, MICRO_BATCHES, slices.size());
        return outcome(
                CPU.withThreads(threads),
                settings,
                split ? Orders.split(order, 1) : order,
                new Rows(TinyRuns.tokens(shape.vocabulary()), false));
    }

    private static Map<String, Object> outcome(
            DeviceSettings device,
            String family,
            boolean padded,
            int stages,
            List<Integer> slices,
            int grid) {
        ModelShape shape = TinyFamilies.shape(family);
        var batch = new BatchShape(2, MICRO_BATCHES, slices, grid);
        return outcome(
                device,
                TinyRuns.settings(shape, stages, batch),
                Orders.oneForwardOneBackward(stages, MICRO_BATCHES, slices.size()),
                new Rows(TinyRuns.tokens(shape.vocabulary()), padded));
    }

    /** Everything that a run yields: numbers, and the bits of what are many. */
    private static Map<String, Object> outcome(
            DeviceSettings device, GptSettings settings, Schedule order, Rows rows) {
        try (var pipeline =
                new PipelineDriver(
                                Devices.open(device),
                                settings,
                                order,
                                rows,
                                TinyRuns.roughWeights())
                        .clippingTo(1)) {
            Map<String, Object> outcome = new TreeMap<>();
            for (int step = 1; step <= 2; step++) {
                outcome.put("loss " + step, pipeline.train(step));
            }
            pipeline.gradients().forEach((name, g) -> outcome.put("g " + name, bits(g)));
            outcome.put("evaluated", pipeline.evaluate(0));
            return outcome;
        }
    }

    private static IntBuffer bits(float[] values) {
        int[] bits = new int[values.length];
        Arrays.setAll(bits, i -> Float.floatToRawIntBits(values[i]));
        return IntBuffer.wrap(bits);
    }

    @Test
    void shardsAndReplicasComputeTheSame() throws Exception {
        ModelShape shape = TinyFamilies.shape("qwen3");
        var batch = new BatchShape(2, 2, List.of(CONTEXT), 4);
        var rows = new Rows(TinyRuns.tokens(shape.vocabulary()), true);
        double expected;
        try (var one =
                new PipelineDriver(
                        TinyRuns.settings(shape, 1, batch),
                        Orders.oneForwardOneBackward(1, 2, 1),
                        rows,
                        TinyRuns.roughWeights())) {
            one.train(1);
            expected = one.train(2);
        }
        for (RankGrid grid : List.of(new RankGrid(2, 2, 1, 1), new RankGrid(1, 1, 1, 2))) {
            int microBatches = 2 / grid.data();
            var ofReplica = new BatchShape(2, microBatches, List.of(32, 32), 4);
            GptSettings settings =
                    TinyRuns.sequenceParallel(
                            TinyRuns.settings(shape, grid.pipeline(), ofReplica)
                                    .onGrid(grid, ZeroSettings.OFF));
            try (var ranks =
                    new GridDriver(
                            settings,
                            Orders.oneForwardOneBackward(grid.pipeline(), microBatches, 2),
                            new Rows(TinyRuns.tokens(shape.vocabulary()), false),
                            TinyRuns.roughWeights())) {
                ranks.train(1);
                assertThat(ranks.train(2)).as("%s", grid).isCloseTo(expected, within(1e-5));
            }
        }
    }

    @Test
    void contextPartsAreRefused() {
        ModelShape shape = TinyFamilies.shape("qwen3");
        GptSettings settings =
                TinyRuns.settings(shape, 1, new BatchShape(2, 2, List.of(CONTEXT), 4))
                        .onGrid(new RankGrid(1, 1, 2, 1), ZeroSettings.OFF);

        assertThatThrownBy(
                        () ->
                                new GridDriver(
                                        settings,
                                        Orders.oneForwardOneBackward(1, 2, 1),
                                        new Rows(TinyRuns.tokens(shape.vocabulary()), false),
                                        TinyRuns.roughWeights()))
                .hasMessageContaining("expected whole sequences where micro-batches are unequal");
    }

    /** Rows of other lengths in every micro-batch and step; what follows is padding. */
    private record Rows(BatchSource tokens, boolean padded) implements BatchSource {
        @Override
        public void read(StepKind kind, long step, int microBatch, int[] into) {
            tokens.read(kind, step, microBatch, into);
            for (int i = 0; i < into.length; i++) {
                into[i] = i % (CONTEXT + 1) > length(step, microBatch, i) ? 0 : into[i];
            }
        }

        @Override
        public boolean masked() {
            return true;
        }

        @Override
        public boolean unequal() {
            return !padded;
        }

        @Override
        public int tokens(StepKind kind, long step, int microBatch, int context) {
            return padded ? context : longest(step, microBatch);
        }

        private static int longest(long step, int microBatch) {
            return List.of(48, 16, 32, 64, 16).get((int) ((step + 2L * microBatch) % 5));
        }

        /** Targets of the row with this token: none shorter than half of the longest. */
        private static int length(long step, int microBatch, int token) {
            int longest = longest(step, microBatch);
            return token > CONTEXT ? longest : longest / 2 + microBatch;
        }

        @Override
        public void marks(StepKind kind, long step, int microBatch, byte[] marks) {
            for (int i = 0; i < marks.length; i++) {
                marks[i] = i % (CONTEXT + 1) > length(step, microBatch, i) ? UNCOUNTED : 0;
            }
        }
    }
}
