package dev.penstock.runtime.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DropoutMask;
import dev.penstock.runtime.data.BatchSource;
import dev.penstock.runtime.inference.PlainGpt;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.parameters.CounterRandom;
import dev.penstock.runtime.model.parameters.ParameterSource;
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
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.DoubleSupplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Dropout of the residual stream: against its definition, and the same in every layout. */
class DropoutTest {
    private static final int MICRO_BATCHES = 2;
    private static final int SEQUENCES = 2;
    private static final List<Integer> WHOLE = List.of(64);
    private static final double SHARE = 0.3;

    /** A model in doubles with the masks of a step, and the mean loss of the step's tokens. */
    private static final class Plain {
        private final PlainGpt model;
        private final GptSettings settings;
        private final BatchSource tokens;
        private long sequence;

        Plain(GptSettings settings, BatchSource tokens) {
            ModelShape shape = settings.shape();
            model =
                    PlainGpt.of(
                            ModelConfig.gpt2(
                                    shape.vocabulary(),
                                    shape.context(),
                                    shape.width(),
                                    shape.layers(),
                                    shape.heads(),
                                    shape.tied()),
                            TinyRuns.roughWeights());
            this.settings = settings;
            this.tokens = tokens;
        }

        double loss(long step) {
            CounterRandom keys = CounterRandom.of(settings.seed(), "dropout in step " + step);
            int context = settings.shape().context();
            double p = settings.dropout();
            model.droppingOut(
                    (place, x) -> {
                        var mask = new DropoutMask(CounterRandom.of(0, place).bits(0), 0, p, 1);
                        for (int t = 0; t < x.length; t++) {
                            long key = keys.bits(sequence * context + t);
                            for (int j = 0; j < x[t].length; j++) {
                                x[t][j] = mask.keeps(key, j) ? x[t][j] / (1 - p) : 0;
                            }
                        }
                    });
            double sum = 0;
            int[] read = new int[SEQUENCES * (context + 1)];
            for (int m = 0; m < MICRO_BATCHES; m++) {
                tokens.read(StepKind.TRAIN, step, m, read);
                for (int b = 0; b < SEQUENCES; b++) {
                    sequence = (long) m * SEQUENCES + b;
                    int first = b * (context + 1);
                    double[][] logits =
                            model.logits(Arrays.copyOfRange(read, first, first + context));
                    for (int t = 0; t < context; t++) {
                        sum += PlainGpt.surprise(logits[t], read[first + t + 1]);
                    }
                }
            }
            return sum / (MICRO_BATCHES * SEQUENCES * context);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void lossesAndGradientsAreThoseOfTheDefinition(boolean tied) {
        GptSettings settings =
                TinyRuns.settings(
                                tied ? TinyRuns.TIED : TinyRuns.UNTIED,
                                1,
                                new BatchShape(SEQUENCES, MICRO_BATCHES, List.of(16), 4))
                        .dropping(SHARE);
        BatchSource tokens = TinyRuns.tokens(37);
        var plain = new Plain(settings, tokens);
        try (var pipeline =
                new PipelineDriver(
                        settings,
                        Orders.oneForwardOneBackward(1, MICRO_BATCHES, 1),
                        tokens,
                        TinyRuns.roughWeights())) {
            assertThat(pipeline.train(1)).isCloseTo(plain.loss(1), within(1e-5));
            assertThat(plain.loss(2)).isNotCloseTo(plain.loss(1), within(1e-3));

            Map<String, float[]> gradients = pipeline.gradients();
            assertThat(gradients).hasSize(tied ? 3 * 12 + 4 : 3 * 12 + 5);
            gradients.forEach(
                    (name, gradient) ->
                            expectSlope(
                                    name, plain.model.weight(name), gradient, () -> plain.loss(1)));
        }
    }

    /** Compares a gradient with differences of the loss along a random direction. */
    private static void expectSlope(
            String name, float[] weight, float[] gradient, DoubleSupplier loss) {
        var random = new Random(name.hashCode());
        float[] before = weight.clone();
        float[] step = new float[weight.length];
        for (int i = 0; i < step.length; i++) {
            step[i] = (float) (1e-3 * random.nextGaussian());
            weight[i] = before[i] + step[i];
        }
        float[] above = weight.clone();
        double difference = loss.getAsDouble();
        for (int i = 0; i < step.length; i++) {
            weight[i] = before[i] - step[i];
        }
        difference -= loss.getAsDouble();
        double slope = 0;
        double size = 0;
        for (int i = 0; i < step.length; i++) {
            double moved = (double) above[i] - weight[i];
            slope += gradient[i] * moved;
            size += Math.pow(gradient[i] * moved, 2);
        }
        System.arraycopy(before, 0, weight, 0, before.length);
        assertThat(difference).as(name).isCloseTo(slope, within(1e-3 * Math.sqrt(size) + 1e-9));
    }

    static Stream<Arguments> familiesAndPrecisions() {
        return Stream.of("llama", "qwen3", "gpt2-variants")
                .flatMap(
                        family ->
                                TinyRuns.ON_CPUS.stream()
                                        .map(precision -> Arguments.of(family, precision)));
    }

    @ParameterizedTest(name = "{0}, {1}")
    @MethodSource("familiesAndPrecisions")
    void stagesSlicesOrdersAndRecomputationDoNotChangeABit(String family, Precision precision) {
        Schedule one = Orders.oneForwardOneBackward(1, MICRO_BATCHES, 1);
        ModelShape shape = TinyFamilies.shape(family);
        Map<String, Object> bits = run(settings(shape, precision, 1, WHOLE), one);
        GptSettings halves = settings(shape, precision, 2, List.of(32, 32));
        Schedule two = Orders.oneForwardOneBackward(2, MICRO_BATCHES, 2);

        assertThat(run(halves, two)).isEqualTo(bits);
        assertThat(run(halves, Orders.split(two, 1))).isEqualTo(bits);
        assertThat(run(TinyRuns.recomputing(halves, Set.of(0, 1)), two)).isEqualTo(bits);
        assertThat(run(TinyRuns.recomputing(halves, Set.of(0)), Orders.split(two, 1)))
                .isEqualTo(bits);
        assertThat(run(halves, InsertRecompute.into(two))).isEqualTo(bits);
        assertThat(run(settings(shape, precision, 4, WHOLE), fourStages())).isEqualTo(bits);
        assertThat(
                        run(
                                settings(shape, precision, 2, List.of(32, 16, 16)),
                                Orders.gpipe(2, MICRO_BATCHES, 3)))
                .isEqualTo(bits);
    }

    /** More than there are blocks: the embeddings and the head are alone. */
    private static Schedule fourStages() {
        return Orders.oneForwardOneBackward(4, MICRO_BATCHES, 1);
    }

    private static GptSettings settings(
            ModelShape shape, Precision precision, int stages, List<Integer> slices) {
        var batch = new BatchShape(SEQUENCES, MICRO_BATCHES, slices, 16);
        return TinyRuns.settings(shape, stages, batch, precision).dropping(SHARE);
    }

    /** Everything that two steps yield, as bits; the gradients are those of the first. */
    private static Map<String, Object> run(GptSettings settings, Schedule order) {
        DeviceSettings cpu =
                DeviceSettings.DEFAULTS.withKind(DeviceSettings.Kind.CPU).withThreads(1);
        try (var pipeline =
                new PipelineDriver(
                        Devices.open(cpu),
                        settings,
                        order,
                        TinyRuns.tokens(settings.shape().vocabulary()),
                        TinyRuns.roughWeights())) {
            Map<String, Object> outcome = new TreeMap<>();
            outcome.put("loss 1", pipeline.train(1));
            pipeline.gradients().forEach((name, g) -> outcome.put("g " + name, bits(g)));
            outcome.put("loss 2", pipeline.train(2));
            pipeline.state().forEach((name, values) -> outcome.put(name, bits(values)));
            outcome.put("evaluated", pipeline.evaluate(0));
            return outcome;
        }
    }

    /** Compared by content. */
    private static IntBuffer bits(float[] values) {
        int[] bits = new int[values.length];
        Arrays.setAll(bits, i -> Float.floatToRawIntBits(values[i]));
        return IntBuffer.wrap(bits);
    }

    @Test
    void dropoutIsOfTrainingAloneAndEveryStepHasItsOwn() {
        ModelShape shape = TinyFamilies.shape("llama");
        Schedule order = Orders.oneForwardOneBackward(1, 1, 1);
        BatchSource tokens = TinyRuns.tokens(101);
        BatchSource same = (kind, _, _, into) -> tokens.read(kind, 1, 0, into);
        GptSettings plain = TinyRuns.settings(shape, 1, new BatchShape(1, 1, WHOLE, 16));
        GptSettings half = plain.dropping(0.5);
        ParameterSource rough = TinyRuns.roughWeights();
        try (var without = new PipelineDriver(plain, order, same, rough);
                var with = new PipelineDriver(half, order, same, rough);
                var later = new PipelineDriver(half, order, same, rough)) {

            assertThat(with.evaluate(0)).isEqualTo(without.evaluate(0));
            double first = with.train(1);
            assertThat(Math.abs(first - without.train(1))).isGreaterThan(1e-3);
            assertThat(Math.abs(first - later.train(2))).isGreaterThan(1e-3);
        }
    }

    /** The masks are those of the tokens, whoever has them: what differs is the order of sums. */
    @ParameterizedTest(
            name = "{0}: {1} stages, {2} shards, {3} parts, {4} replicas, rows divided {5}")
    @CsvSource({
        "llama, 1, 2, 1, 1, false",
        "llama, 1, 2, 1, 1, true",
        "gpt2-variants, 1, 2, 1, 1, true",
        "llama, 1, 1, 2, 1, false",
        "gpt2-variants, 2, 1, 2, 1, false",
        "gpt2-variants, 2, 1, 1, 2, false",
        "llama, 1, 2, 2, 2, true",
    })
    void dropoutIsTheSameOnAnyGrid(
            String family, int stages, int shards, int parts, int replicas, boolean sequence)
            throws Exception {
        ModelShape shape = TinyFamilies.shape(family);
        GptSettings whole = settings(shape, Precision.FLOAT32, 1, WHOLE);
        int each = MICRO_BATCHES / replicas;
        GptSettings divided =
                TinyRuns.settings(shape, stages, new BatchShape(SEQUENCES, each, WHOLE, 16))
                        .dropping(SHARE)
                        .onGrid(new RankGrid(stages, shards, parts, replicas), whole.zero());
        GptSettings settings = sequence ? TinyRuns.sequenceParallel(divided) : divided;
        Schedule part = Orders.oneForwardOneBackward(stages, each, 1);
        ParameterSource rough = TinyRuns.roughWeights();
        try (var one =
                        new PipelineDriver(
                                whole,
                                Orders.oneForwardOneBackward(1, MICRO_BATCHES, 1),
                                TinyRuns.tokens(101),
                                rough);
                var all = new GridDriver(settings, part, TinyRuns.tokens(101), rough);
                var split =
                        new GridDriver(
                                settings, Orders.split(part, 1), TinyRuns.tokens(101), rough)) {
            double first = all.train(1);
            assertThat(first).isCloseTo(one.train(1), within(1e-5));
            assertThat(split.train(1)).isEqualTo(first);
            assertNear(all.gradients(), one.gradients());
            split.gradients()
                    .forEach(
                            (name, values) ->
                                    assertThat(values)
                                            .as(name)
                                            .isEqualTo(all.gradients().get(name)));
            assertThat(all.train(2)).isCloseTo(one.train(2), within(1e-4));
        }
    }

    private static void assertNear(Map<String, float[]> found, Map<String, float[]> wanted) {
        assertThat(found.keySet()).isEqualTo(new TreeMap<>(wanted).keySet());
        wanted.forEach(
                (name, values) -> {
                    float[] own = Objects.requireNonNull(found.get(name));
                    double apart = 0;
                    double size = 0;
                    for (int i = 0; i < values.length; i++) {
                        apart += Math.pow(own[i] - values[i], 2);
                        size += Math.pow(values[i], 2);
                    }
                    assertThat(Math.sqrt(apart)).as(name).isLessThan(1e-4 * Math.sqrt(size) + 1e-7);
                });
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3})
    void dividingStatesAmongReplicasDoesNotChangeABit(int zero) throws Exception {
        Schedule order = Orders.oneForwardOneBackward(2, 1, 1);
        GptSettings plain =
                TinyRuns.settings(
                                TinyFamilies.shape("gpt2-variants"),
                                2,
                                new BatchShape(SEQUENCES, 1, WHOLE, 16))
                        .dropping(SHARE)
                        .onGrid(new RankGrid(2, 1, 1, 2), ZeroSettings.OFF);
        GptSettings divided =
                plain.onGrid(plain.grid(), new ZeroSettings(zero, ZeroSettings.Residency.LAYER, 1));
        try (var whole =
                        new GridDriver(
                                plain, order, TinyRuns.tokens(101), TinyRuns.roughWeights());
                var parts =
                        new GridDriver(
                                divided, order, TinyRuns.tokens(101), TinyRuns.roughWeights())) {
            for (int step = 1; step <= 3; step++) {
                assertThat(parts.train(step)).isEqualTo(whole.train(step));
            }
        }
    }

    @ParameterizedTest
    @ValueSource(doubles = {1, -0.1, Double.NaN})
    void whatIsNoProbabilityIsRefused(double share) {
        GptSettings settings = TinyRuns.settings(TinyRuns.TIED, 1, TinyRuns.batch(List.of(16)));

        assertThatThrownBy(() -> settings.dropping(share))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("expected a probability in [0, 1), got " + share);
    }
}
