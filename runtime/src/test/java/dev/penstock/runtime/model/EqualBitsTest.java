package dev.penstock.runtime.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.spi.StepKind;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.base.ScheduleKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.InsertRecompute;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class EqualBitsTest {
    private static final int STEPS = 3;
    private static final List<Integer> WHOLE = List.of(16);

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void theNumberOfStagesDoesNotChangeABit(boolean tied) {
        ModelShape shape = tied ? TinyRuns.TIED : TinyRuns.UNTIED;

        Outcome one = run(shape, 1, WHOLE);

        for (int stages = 2; stages <= 5; stages++) {
            assertThat(run(shape, stages, WHOLE)).as("%d stages", stages).isEqualTo(one);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"8,8", "4,4,4,4", "12,4", "4,8,4"})
    void slicesOnTheGridDoNotChangeABit(String lengths) {
        List<Integer> slices = Arrays.stream(lengths.split(",")).map(Integer::valueOf).toList();

        Outcome whole = run(TinyRuns.TIED, 2, WHOLE);

        assertThat(run(TinyRuns.TIED, 2, slices)).isEqualTo(whole);
        assertThat(run(TinyRuns.TIED, 1, slices)).isEqualTo(whole);
    }

    @Test
    void slicesOffTheGridAgreeWithinTolerance() {
        Outcome whole = run(TinyRuns.TIED, 2, WHOLE);

        Outcome sliced = run(TinyRuns.TIED, 2, List.of(7, 6, 3));

        for (int i = 0; i < whole.losses().size(); i++) {
            assertThat(sliced.losses().get(i)).isCloseTo(whole.losses().get(i), within(1e-4));
        }
    }

    @Test
    void schedulesOfOneClassDoNotDifferInABit() {
        GptSettings settings = TinyRuns.settings(TinyRuns.TIED, 3, TinyRuns.batch(List.of(8, 8)));

        Outcome seq1f1b = run(settings, Orders.oneForwardOneBackward(3, 3, 2));
        Outcome gpipe = run(settings, Orders.gpipe(3, 3, 2));

        assertThat(gpipe).isEqualTo(seq1f1b);
    }

    /** Stages of a rank share scratch and rooms of units. */
    @Test
    void severalStagesOnARankDoNotChangeABit() {
        var batch = new BatchShape(2, 4, List.of(16), 4);
        Schedule order =
                Generators.generate("interleaved-1f1b", new PipelineShape(2, 2, 4, List.of(16)));

        Outcome one = run(TinyRuns.settings(TinyRuns.TIED, 1, batch), Orders.gpipe(1, 4, 1));

        GptSettings settings = TinyRuns.settings(TinyRuns.TIED, 4, batch);
        assertThat(run(settings, order)).isEqualTo(one);
        assertThat(run(settings, InsertRecompute.into(order))).isEqualTo(one);
        assertThat(run(TinyRuns.recomputing(settings, Set.of(0, 2)), order)).isEqualTo(one);
    }

    @ParameterizedTest
    @ValueSource(strings = {"16", "8,8", "4,12"})
    void aBackwardInTwoPartsDoesNotChangeABit(String lengths) {
        List<Integer> slices = Arrays.stream(lengths.split(",")).map(Integer::valueOf).toList();
        for (int stages = 1; stages <= 4; stages++) {
            GptSettings settings = TinyRuns.settings(TinyRuns.TIED, stages, TinyRuns.batch(slices));
            Schedule whole = Orders.oneForwardOneBackward(stages, 3, slices.size());
            Outcome expected = run(settings, whole);

            for (int late : List.of(0, 1, 2, 100)) {
                assertThat(run(settings, Orders.split(whole, late)))
                        .as("%d stages, %d late", stages, late)
                        .isEqualTo(expected);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"16", "8,8", "4,12"})
    void whatIsComputedASecondTimeDoesNotChangeABit(String lengths) {
        List<Integer> slices = Arrays.stream(lengths.split(",")).map(Integer::valueOf).toList();
        for (int stages = 1; stages <= 5; stages++) {
            GptSettings settings = TinyRuns.settings(TinyRuns.TIED, stages, TinyRuns.batch(slices));
            Schedule kept = Orders.oneForwardOneBackward(stages, 3, slices.size());
            Outcome expected = run(settings, kept);

            assertThat(run(settings, InsertRecompute.into(kept)))
                    .as("%d stages", stages)
                    .isEqualTo(expected);
            assertThat(run(settings, InsertRecompute.into(kept, stage -> stage % 2 == 0)))
                    .as("%d stages, every other one", stages)
                    .isEqualTo(expected);
            assertThat(run(settings, InsertRecompute.into(Orders.split(kept, 2))))
                    .as("%d stages, split", stages)
                    .isEqualTo(expected);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"16", "8,8", "4,12"})
    void blocksThatRunAgainOneByOneDoNotChangeABit(String lengths) {
        List<Integer> slices = Arrays.stream(lengths.split(",")).map(Integer::valueOf).toList();
        for (int stages = 1; stages <= 5; stages++) {
            GptSettings kept = TinyRuns.settings(TinyRuns.TIED, stages, TinyRuns.batch(slices));
            Schedule order = Orders.oneForwardOneBackward(stages, 3, slices.size());
            Outcome expected = run(kept, order);

            for (Set<Integer> blocks : List.of(Set.of(0, 1, 2), Set.of(1))) {
                GptSettings settings = TinyRuns.recomputing(kept, blocks);
                assertThat(run(settings, order))
                        .as("%d stages, blocks %s", stages, blocks)
                        .isEqualTo(expected);
                assertThat(run(settings, InsertRecompute.into(order)))
                        .as("%d stages, blocks %s and units", stages, blocks)
                        .isEqualTo(expected);
                assertThat(run(settings, Orders.split(order, 1)))
                        .as("%d stages, blocks %s, split", stages, blocks)
                        .isEqualTo(expected);
            }
        }
    }

    /** Also where some backwards of a stage come in two parts and others do not (DualPipeV). */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "zb-h1",
                "zb-h2",
                "zb-1p",
                "interleaved-zb",
                "zb-v",
                "v-half",
                "v-min",
                "dualpipe-v"
            })
    void blocksThatRunAgainKeepTheBitsOfOrdersWithSplitBackwards(String kind) {
        boolean chunked = Generators.kind(kind).chunks() != ScheduleKind.Chunks.ONE;
        Schedule order =
                Generators.generate(kind, new PipelineShape(2, chunked ? 2 : 1, 4, List.of(16)));
        GptSettings kept =
                TinyRuns.settings(
                        TinyRuns.TIED,
                        order.shape().stages(),
                        new BatchShape(2, 4, List.of(16), 4));
        Outcome expected = run(kept, order);

        assertThat(run(TinyRuns.recomputing(kept, Set.of(0, 1, 2)), order)).isEqualTo(expected);
        assertThat(run(TinyRuns.recomputing(kept, Set.of(1)), order)).isEqualTo(expected);
    }

    @Test
    void overlappedPairsDoNotChangeABit() {
        GptSettings settings = TinyRuns.settings(TinyRuns.TIED, 3, TinyRuns.batch(List.of(8, 8)));
        Schedule plain = Orders.oneForwardOneBackward(3, 3, 2);
        Outcome expected = run(settings, plain);

        assertThat(run(settings, Orders.overlapped(plain))).isEqualTo(expected);
        assertThat(run(settings, Orders.overlapped(Orders.split(plain, 2)))).isEqualTo(expected);
    }

    @Test
    void pairsOfAllKindsDoNotChangeABit() {
        GptSettings settings =
                TinyRuns.settings(TinyRuns.TIED, 4, new BatchShape(1, 5, List.of(16), 4));
        Schedule pairs = Generators.generate("stp", new PipelineShape(2, 2, 5, List.of(16)));

        assertThat(run(settings, pairs)).isEqualTo(run(settings, Orders.apart(pairs)));
    }

    @Test
    void theReverseOrderIsAClassOfItsOwnWithinTolerance() {
        GptSettings settings = TinyRuns.settings(TinyRuns.TIED, 3, TinyRuns.batch(List.of(8, 8)));

        Outcome fifo = run(settings, Orders.gpipe(3, 3, 2));
        Outcome terapipe = run(settings, Orders.lastInFirstOut(3, 3, 2));

        assertThat(terapipe.losses().getFirst()).isEqualTo(fifo.losses().getFirst());
        for (int i = 0; i < STEPS; i++) {
            assertThat(terapipe.losses().get(i)).isCloseTo(fifo.losses().get(i), within(1e-4));
        }
    }

    @Test
    void anEvaluationBetweenStepsChangesNothing() {
        GptSettings settings = TinyRuns.settings(TinyRuns.TIED, 2, TinyRuns.batch(WHOLE));
        try (PipelineDriver plain = TinyRuns.pipeline(settings);
                PipelineDriver evaluated = TinyRuns.pipeline(settings)) {
            for (int step = 1; step <= STEPS; step++) {
                double first = evaluated.evaluate(0);

                assertThat(evaluated.train(step)).isEqualTo(plain.train(step));
                assertThat(evaluated.evaluate(0)).isNotEqualTo(first);
            }
            assertThat(bits(evaluated.state())).isEqualTo(bits(plain.state()));
        }
    }

    @Test
    void evaluationLossIsThatOfTrainingOnTheSameTokens() {
        GptSettings settings = TinyRuns.settings(TinyRuns.TIED, 2, TinyRuns.batch(List.of(8, 8)));
        try (PipelineDriver pipeline = TinyRuns.pipeline(settings);
                PipelineDriver other =
                        new PipelineDriver(
                                settings,
                                Orders.gpipe(2, 3, 2),
                                (kind, step, microBatch, into) ->
                                        TinyRuns.tokens(37)
                                                .read(StepKind.EVALUATE, 5, microBatch, into),
                                ParameterSource.none())) {

            double evaluated = pipeline.evaluate(5);

            assertThat(evaluated).isEqualTo(other.train(1));
        }
    }

    @Test
    void anAbandonedStepLeavesNoTrace() {
        GptSettings settings = TinyRuns.settings(TinyRuns.TIED, 1, TinyRuns.batch(List.of(8, 8)));
        try (PipelineDriver plain = TinyRuns.pipeline(settings);
                PipelineDriver interrupted = TinyRuns.pipeline(settings)) {
            interrupted.abandon(1, 5);

            assertThat(interrupted.train(1)).isEqualTo(plain.train(1));
            assertThat(interrupted.train(2)).isEqualTo(plain.train(2));
        }
    }

    /** Everything that a run yields, as bits. */
    private record Outcome(List<Double> losses, Map<String, List<Integer>> bits) {}

    private static Outcome run(ModelShape shape, int stages, List<Integer> slices) {
        GptSettings settings = TinyRuns.settings(shape, stages, TinyRuns.batch(slices));
        return run(settings, Orders.oneForwardOneBackward(stages, 3, slices.size()));
    }

    private static Outcome run(GptSettings settings, Schedule order) {
        try (PipelineDriver pipeline =
                new PipelineDriver(
                                settings,
                                order,
                                TinyRuns.tokens(settings.shape().vocabulary()),
                                ParameterSource.none())
                        .clippingTo(1)) {
            List<Double> losses = new ArrayList<>();
            Map<String, List<Integer>> bits = new TreeMap<>();
            for (int step = 1; step <= STEPS; step++) {
                losses.add(pipeline.train(step));
                losses.add(pipeline.gradientNorm());
                String prefix = "step " + step + " gradient of ";
                bits(pipeline.gradients()).forEach((name, b) -> bits.put(prefix + name, b));
            }
            bits.putAll(bits(pipeline.state()));
            return new Outcome(losses, bits);
        }
    }

    private static Map<String, List<Integer>> bits(Map<String, float[]> tensors) {
        Map<String, List<Integer>> bits = new TreeMap<>();
        tensors.forEach(
                (name, values) -> {
                    List<Integer> all = new ArrayList<>();
                    for (float value : values) {
                        all.add(Float.floatToRawIntBits(value));
                    }
                    bits.put(name, all);
                });
        return bits;
    }
}
