package dev.penstock.runtime.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.withinPercentage;

import dev.penstock.actors.spi.NonFiniteException;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Gemm;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.runtime.data.BatchSource;
import dev.penstock.runtime.gpu.EmulatedGpus;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.GradientSum;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.Precision;
import dev.penstock.runtime.model.shape.ZeroSettings;
import dev.penstock.runtime.model.shape.ZeroSettings.Reduction;
import dev.penstock.runtime.model.shape.ZeroSettings.Residency;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.base.GenerateOptions;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.InsertRecompute;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Sums of gradients in fixed point: whoever adds which micro-batch, in whatever order. */
class ExactGradientsTest {
    private static final double CLIP = 0.5;
    private static final double NO_CLIP = Double.MAX_VALUE;
    private static final List<Integer> WHOLE = List.of(16);

    /**
     * @param gradients of every step, as a hash
     */
    private record Outcome(
            List<Double> losses, List<Integer> gradients, Map<String, List<Integer>> state) {}

    private static GptSettings settings(
            ModelShape shape, int stages, int microBatches, List<Integer> slices) {
        return settings(shape, stages, microBatches, slices, Precision.FLOAT32);
    }

    private static GptSettings settings(
            ModelShape shape,
            int stages,
            int microBatches,
            List<Integer> slices,
            Precision precision) {
        return TinyRuns.settings(
                        shape, stages, new BatchShape(2, microBatches, slices, 4), precision)
                .summing(GradientSum.FIXED_POINT);
    }

    private static Schedule order(String kind, int ranks, int chunks, int microBatches) {
        return Generators.generate(
                kind,
                new PipelineShape(ranks, chunks, microBatches, WHOLE),
                GenerateOptions.defaults());
    }

    private static Outcome run(
            GptSettings settings, Schedule order, BatchSource batches, int steps, double clip)
            throws InterruptedException, ExecutionException {
        try (var driver = new ReplicatedDriver(settings, order, batches)) {
            List<Integer> gradients = new ArrayList<>();
            for (int step = 1; step <= steps; step++) {
                driver.train(step, clip);
                gradients.add(bits(driver.gradients()).hashCode());
            }
            return new Outcome(driver.losses(), gradients, bits(driver.state()));
        }
    }

    private static Outcome run(GptSettings settings, Schedule order)
            throws InterruptedException, ExecutionException {
        return run(settings, order, TinyRuns.tokens(37), 3, CLIP);
    }

    private static Map<String, List<Integer>> bits(Map<String, float[]> tensors) {
        Map<String, List<Integer>> bits = new TreeMap<>();
        tensors.forEach(
                (name, values) ->
                        bits.put(
                                name,
                                IntStream.range(0, values.length)
                                        .map(i -> Float.floatToRawIntBits(values[i]))
                                        .boxed()
                                        .toList()));
        return bits;
    }

    // ---- who computes what ----------------------------------------------------------------------

    @ParameterizedTest
    @CsvSource({"8, 1 2 4 8", "6, 1 2 3 6"})
    void theNumberOfReplicasDoesNotChangeABitInTwentySteps(int microBatches, String replicas)
            throws Exception {
        List<Outcome> outcomes = new ArrayList<>();
        for (String n : replicas.split(" ")) {
            int data = Integer.parseInt(n);
            GptSettings settings =
                    settings(TinyRuns.TIED, 2, microBatches / data, WHOLE).dropping(0.1);
            outcomes.add(
                    run(
                            TinyRuns.replicated(settings, data, ZeroSettings.OFF),
                            Orders.oneForwardOneBackward(2, microBatches / data, 1),
                            TinyRuns.tokens(37),
                            20,
                            CLIP));
        }

        assertThat(outcomes).allMatch(outcomes.getFirst()::equals);
    }

    @Test
    void replicasMayShareMicroBatchesInAnyWay() throws Exception {
        Outcome expected =
                run(settings(TinyRuns.UNTIED, 2, 6, WHOLE), Orders.oneForwardOneBackward(2, 6, 1));
        var random = new Random(5);
        for (int data : new int[] {1, 2, 3}) {
            List<Integer> places = new ArrayList<>(IntStream.range(0, 6).boxed().toList());
            Collections.shuffle(places, random);
            BatchSource tokens = TinyRuns.tokens(37);
            BatchSource shuffled =
                    (kind, step, microBatch, into) ->
                            tokens.read(kind, step, places.get(microBatch), into);
            GptSettings settings =
                    TinyRuns.replicated(
                            settings(TinyRuns.UNTIED, 2, 6 / data, WHOLE), data, ZeroSettings.OFF);

            Outcome outcome =
                    run(settings, Orders.oneForwardOneBackward(2, 6 / data, 1), shuffled, 3, CLIP);

            assertThat(outcome).as("%d replicas, %s", data, places).isEqualTo(expected);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3})
    void whatReplicasDivideDoesNotChangeABit(int zero) throws Exception {
        Schedule four = order("interleaved-1f1b", 2, 2, 4);
        GptSettings settings = settings(TinyRuns.TIED, 4, 4, WHOLE, Precision.BF16);
        BatchSource tokens = TinyRuns.tokens(37);
        Outcome expected =
                run(
                        TinyRuns.replicated(
                                settings(TinyRuns.TIED, 4, 2, WHOLE, Precision.BF16),
                                4,
                                ZeroSettings.OFF),
                        order("interleaved-1f1b", 2, 2, 2),
                        tokens,
                        3,
                        NO_CLIP);

        for (Reduction reduction : Reduction.values()) {
            if (zero == 1 && reduction == Reduction.PER_MICRO_BATCH) {
                continue;
            }
            var divided = new ZeroSettings(zero, Residency.PASS, 1).reducing(reduction);
            assertThat(run(TinyRuns.replicated(settings, 2, divided), four, tokens, 3, NO_CLIP))
                    .as("%s", reduction)
                    .isEqualTo(expected);
        }
    }

    // ---- in which order -------------------------------------------------------------------------

    @ParameterizedTest
    @CsvSource({
        "gpipe, 4, 1",
        "breadth-first, 2, 2",
        "interleaved-1f1b, 2, 2",
        "zb-h1, 4, 1",
        "zb-v, 2, 2"
    })
    void ordersOfAllClassesDoNotDifferInABit(String kind, int ranks, int chunks) throws Exception {
        GptSettings settings = settings(TinyRuns.TIED, 4, 4, WHOLE);
        Outcome expected = run(settings, Orders.oneForwardOneBackward(4, 4, 1));

        assertThat(run(settings, order(kind, ranks, chunks, 4))).isEqualTo(expected);
    }

    @Test
    void theLastMicroBatchMayComeBackFirst() throws Exception {
        GptSettings settings = settings(TinyRuns.TIED, 3, 3, List.of(8, 8));

        Outcome first = run(settings, Orders.gpipe(3, 3, 2));

        assertThat(run(settings, Orders.lastInFirstOut(3, 3, 2))).isEqualTo(first);
        assertThat(run(settings.summing(GradientSum.FLOAT32), Orders.lastInFirstOut(3, 3, 2)))
                .isNotEqualTo(run(settings.summing(GradientSum.FLOAT32), Orders.gpipe(3, 3, 2)));
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2, 100})
    void weightsMayComeLate(int late) throws Exception {
        for (List<Integer> slices : List.of(WHOLE, List.of(8, 8), List.of(4, 12))) {
            for (int stages : List.of(1, 3)) {
                GptSettings settings = settings(TinyRuns.TIED, stages, 4, slices);
                Schedule whole = Orders.oneForwardOneBackward(stages, 4, slices.size());
                Outcome expected =
                        run(
                                settings(TinyRuns.TIED, stages, 4, WHOLE),
                                Orders.oneForwardOneBackward(stages, 4, 1));

                assertThat(run(settings, Orders.split(whole, late)))
                        .as("%d stages, slices %s", stages, slices)
                        .isEqualTo(expected);
            }
        }
    }

    /** So that every micro-batch has begun its backward before the first one ends it. */
    @Test
    void weightsMayComeInAnyOrder() throws Exception {
        GptSettings settings = settings(TinyRuns.UNTIED, 2, 4, WHOLE);
        Schedule split = Orders.split(Orders.oneForwardOneBackward(2, 4, 1), 100);
        Outcome expected = run(settings, split);
        var random = new Random(6);

        for (int time = 0; time < 3; time++) {
            List<RankProgram> programs = new ArrayList<>();
            for (RankProgram program : split.programs()) {
                List<Op> others =
                        new ArrayList<>(
                                program.ops().stream()
                                        .filter(op -> !(op instanceof Op.BackwardWeight))
                                        .toList());
                List<Op> weights =
                        new ArrayList<>(
                                program.ops().stream()
                                        .filter(op -> op instanceof Op.BackwardWeight)
                                        .toList());
                Collections.shuffle(weights, random);
                others.addAll(weights);
                programs.add(new RankProgram(program.rank(), others));
            }
            var shuffled = new Schedule(split.name(), split.shape(), split.placement(), programs);

            assertThat(run(settings, shuffled)).isEqualTo(expected);
        }
    }

    @Test
    void whatIsComputedASecondTimeDoesNotChangeABit() throws Exception {
        GptSettings settings = settings(TinyRuns.TIED, 2, 4, WHOLE);
        Schedule order = Orders.oneForwardOneBackward(2, 4, 1);
        Outcome expected = run(settings, order);

        assertThat(run(settings, InsertRecompute.into(order))).isEqualTo(expected);
        assertThat(run(TinyRuns.recomputing(settings, Set.of(0, 2)), order)).isEqualTo(expected);
        assertThat(run(settings, InsertRecompute.into(Orders.split(order, 2)))).isEqualTo(expected);
    }

    @Test
    void theNumberOfStagesDoesNotChangeABit() throws Exception {
        Outcome one =
                run(settings(TinyRuns.TIED, 1, 3, WHOLE), Orders.oneForwardOneBackward(1, 3, 1));

        for (int stages = 2; stages <= 5; stages++) {
            assertThat(
                            run(
                                    settings(TinyRuns.TIED, stages, 3, WHOLE),
                                    Orders.oneForwardOneBackward(stages, 3, 1)))
                    .as("%d stages", stages)
                    .isEqualTo(one);
        }
    }

    // ---- beside sums of floats ------------------------------------------------------------------

    @Test
    void lossesAreThoseOfSumsOfFloats() throws Exception {
        for (Precision precision : TinyRuns.ON_CPUS) {
            GptSettings settings =
                    TinyRuns.replicated(
                            settings(TinyRuns.TIED, 2, 4, WHOLE, precision), 2, ZeroSettings.OFF);
            Schedule order = Orders.oneForwardOneBackward(2, 4, 1);
            BatchSource tokens = TinyRuns.tokens(37);

            Outcome exact = run(settings, order, tokens, 20, CLIP);
            Outcome floats = run(settings.summing(GradientSum.FLOAT32), order, tokens, 20, CLIP);

            double percent = precision == Precision.FLOAT32 ? 1e-3 : 1e-1; // bf16 magnifies
            for (int i = 0; i < 20; i++) {
                assertThat(exact.losses().get(i))
                        .as("%s, step %d", precision, i)
                        .isCloseTo(floats.losses().get(i), withinPercentage(percent));
            }
        }
    }

    // ---- what is left of a step, and what does not fit
    // -------------------------------------------

    @ParameterizedTest
    @CsvSource({"0, PER_STEP", "2, PER_STEP", "2, PER_MICRO_BATCH"})
    void anAbandonedStepLeavesNothing(int zero, Reduction reduction) throws Exception {
        Schedule order = Orders.split(Orders.oneForwardOneBackward(2, 4, 1), 2);
        GptSettings settings =
                TinyRuns.replicated(
                        settings(TinyRuns.TIED, 2, 4, WHOLE),
                        2,
                        new ZeroSettings(zero, Residency.PASS, 1).reducing(reduction));
        Outcome expected = run(settings, order);

        for (int ops : new int[] {5, 9}) {
            try (var driver = new ReplicatedDriver(settings, order, TinyRuns.tokens(37))) {
                driver.train(1, CLIP);
                driver.abandon(2, List.of(ops, ops + 1), 2);
                driver.train(2, CLIP);
                driver.train(3, CLIP);

                assertThat(driver.losses()).isEqualTo(expected.losses());
                assertThat(bits(driver.state())).isEqualTo(expected.state());
            }
        }
    }

    @Test
    void stagesTellWhichMicroBatchesAreInTheirSums() {
        Schedule order = Orders.split(Orders.oneForwardOneBackward(1, 3, 1), 1);
        GptSettings settings = settings(TinyRuns.TIED, 1, 3, WHOLE);
        try (var driver =
                new PipelineDriver(settings, order, TinyRuns.tokens(37), ParameterSource.none())) {
            List<BitSet> seen = new ArrayList<>();
            List<Op> ops = order.program(0).ops();
            for (int after = 0; after <= ops.size(); after++) {
                driver.abandon(1, after);
                seen.add(driver.stages().getFirst().folded());
            }

            for (int after = 0; after <= ops.size(); after++) {
                var truth = new BitSet();
                ops.subList(0, after).stream()
                        .filter(op -> op instanceof Op.BackwardWeight)
                        .forEach(op -> truth.set(((Op.BackwardWeight) op).unit().microBatch()));
                assertThat(seen.get(after)).as("after %d ops", after).isEqualTo(truth);
            }
            driver.stages().getFirst().beginStep(StepKind.TRAIN, 1);
            assertThat(driver.stages().getFirst().folded().isEmpty()).isTrue();
        }
    }

    private static DeviceSettings gpu(boolean graphs) {
        EmulatedGpus.require();
        return DeviceSettings.DEFAULTS
                .withKind(Kind.CUDA)
                .withGemm(Gemm.KERNELS)
                .withGraphs(graphs);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aGpuHasTheSameBitsInEveryOrder(boolean graphs) {
        GptSettings settings = settings(TinyRuns.TIED, 2, 4, List.of(8, 8));
        List<Schedule> orders =
                List.of(
                        Orders.gpipe(2, 4, 2),
                        Orders.lastInFirstOut(2, 4, 2),
                        Orders.split(Orders.oneForwardOneBackward(2, 4, 2), 3));
        List<Outcome> outcomes = new ArrayList<>();
        for (Schedule order : orders) {
            try (var driver =
                    new PipelineDriver(
                            Devices.open(gpu(graphs)),
                            settings,
                            order,
                            TinyRuns.tokens(37),
                            ParameterSource.none())) {
                List<Double> losses = new ArrayList<>();
                List<Integer> gradients = new ArrayList<>();
                for (int step = 1; step <= 3; step++) {
                    losses.add(driver.train(step));
                    gradients.add(bits(driver.gradients()).hashCode());
                }
                outcomes.add(new Outcome(losses, gradients, bits(driver.state())));
            }
        }

        assertThat(outcomes).allMatch(outcomes.getFirst()::equals);
    }

    @ParameterizedTest
    @ValueSource(strings = {"reference", "gpu"})
    void aGradientThatDoesNotFitIsNamed(String kind) {
        DeviceSettings device =
                kind.equals("gpu") ? gpu(true) : DeviceSettings.DEFAULTS.withKind(Kind.REFERENCE);
        ParameterSource steep =
                (name, piece, destination) -> {
                    boolean filled = TinyRuns.roughWeights().fill(name, piece, destination);
                    if (name.equals("lm_head.weight")) {
                        for (long i = 0; i < destination.byteSize() / Float.BYTES; i++) {
                            float value = destination.getAtIndex(ValueLayout.JAVA_FLOAT, i);
                            destination.setAtIndex(ValueLayout.JAVA_FLOAT, i, 1e7f * value);
                        }
                    }
                    return filled;
                };
        GptSettings settings = settings(TinyRuns.UNTIED, 2, 3, WHOLE);
        try (var driver =
                new PipelineDriver(
                        Devices.open(device),
                        settings,
                        Orders.oneForwardOneBackward(2, 3, 1),
                        TinyRuns.tokens(37),
                        steep)) {

            assertThatThrownBy(() -> driver.train(1))
                    .isInstanceOf(NonFiniteException.class)
                    .hasMessageContaining(
                            "step 1, stage 1, micro-batch 0, slice 0: fixed-point sum")
                    .hasMessageContaining("elements up to 65,536");
        }
    }
}
