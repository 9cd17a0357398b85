package dev.penstock.runtime.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.spi.RankPlace;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.CountedKernels;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Gemm;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.runtime.data.BatchSource;
import dev.penstock.runtime.gpu.EmulatedGpus;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.AdamWSettings;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.FineTuning;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.LearningRate;
import dev.penstock.runtime.model.shape.Precision;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.runtime.model.stage.KernelRehearsal;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.stream.LongStream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Whole training on a GPU, emulated where there is none. */
@Tag("gpu")
class GpuRunTest {
    private static final DeviceSettings GPU = DeviceSettings.DEFAULTS.withKind(Kind.CUDA);
    private static final int GOLDEN_STEPS = 8;
    private static final int STEPS = 2;
    private static final AdamWSettings OPTIMIZER =
            new AdamWSettings(LearningRate.constant(0.01), 0.9, 0.95, 1e-8, 0.1, true);

    @BeforeAll
    static void gpus() {
        EmulatedGpus.require();
    }

    @ParameterizedTest(name = "tied {0}, slices of {1}, products of {2}")
    @CsvSource({"true, 16, CUBLAS", "false, 8, CUBLAS", "true, 8, KERNELS"})
    void lossesAndGradientsAreTheGoldenOnes(boolean tied, int slice, Gemm gemm) {
        try (Golden golden = new Golden(tied);
                PipelineDriver pipeline = golden(golden, slice, gemm)) {
            List<Double> expected = golden.numbers("loss_fp64_accum4");

            for (int step = 1; step <= GOLDEN_STEPS; step++) {
                double loss = pipeline.train(step);

                assertThat(loss)
                        .as("loss of step " + step)
                        .isCloseTo(expected.get(step - 1), within(2e-4));
                if (step == 1) {
                    assertGradients(golden, pipeline);
                }
            }
        }
    }

    /** What is dropped is written before every step, where graphs find it. */
    @Test
    void dropoutOfAdaptersIsThatOfTheReference() {
        var golden = new GoldenAdapter();
        var tuning =
                new FineTuning(
                        golden.fineTuning().adapters().map(adapters -> adapters.dropping(0.3)),
                        List.of());
        var batch = new BatchShape(2, 2, List.of(8, 8), 8);
        expectLossesOfTheReference(
                TinyRuns.settings(golden.base().shape(), 2, batch).training(tuning),
                golden.batches(2),
                golden.initial());
    }

    @ParameterizedTest
    @EnumSource(names = {"FLOAT32", "BF16"})
    void dropoutOfTheStreamIsThatOfTheReference(Precision precision) {
        BatchShape batch = new BatchShape(2, 2, List.of(8, 8), 4);
        expectLossesOfTheReference(
                TinyRuns.settings(TinyRuns.TIED, 2, batch, precision).dropping(0.3),
                TinyRuns.tokens(TinyRuns.TIED.vocabulary()),
                TinyRuns.roughWeights());
    }

    private static void expectLossesOfTheReference(
            GptSettings settings, BatchSource batches, ParameterSource source) {
        double tolerance = settings.precision() == Precision.FLOAT32 ? 2e-4 : 2e-3;
        List<List<Double>> losses = new ArrayList<>();
        for (DeviceSettings device :
                List.of(
                        GPU.withKind(Kind.REFERENCE),
                        GPU.withGemm(Gemm.KERNELS).withGraphs(false),
                        GPU.withGemm(Gemm.KERNELS).withGraphs(true))) {
            try (PipelineDriver pipeline =
                    new PipelineDriver(
                            Devices.open(device),
                            settings,
                            Orders.oneForwardOneBackward(2, 2, 2),
                            batches,
                            source)) {
                losses.add(LongStream.rangeClosed(1, 4).mapToObj(pipeline::train).toList());
            }
        }
        for (int step = 0; step < 4; step++) {
            assertThat(losses.get(1).get(step))
                    .isCloseTo(losses.get(0).get(step), within(tolerance));
        }
        assertThat(losses.get(2)).isEqualTo(losses.get(1));
    }

    @ParameterizedTest
    @EnumSource(names = {"CUBLAS", "KERNELS"})
    void anAdapterFollowsItsGoldenRunWithGraphsAndWithout(Gemm gemm) {
        var golden = new GoldenAdapter();
        List<Double> expected = golden.numbers("loss_fp64");
        for (boolean graphs : List.of(false, true)) {
            try (PipelineDriver pipeline =
                    new PipelineDriver(
                            Devices.open(GPU.withGemm(gemm).withGraphs(graphs)),
                            GptSettings.of(
                                            golden.base().shape(),
                                            StagePartition.byFlops(golden.base().shape(), 2),
                                            new BatchShape(2, 2, List.of(8, 8), 8),
                                            Precision.FLOAT32,
                                            new AdamWSettings(
                                                    LearningRate.constant(0.01),
                                                    0.9,
                                                    0.95,
                                                    1e-8,
                                                    0,
                                                    true),
                                            42)
                                    .training(golden.fineTuning()),
                            Orders.oneForwardOneBackward(2, 2, 2),
                            golden.batches(2),
                            golden.initial())) {
                for (int step = 1; step <= GOLDEN_STEPS; step++) {
                    assertThat(pipeline.train(step))
                            .as("loss of step " + step)
                            .isCloseTo(expected.get(step - 1), within(2e-4));
                }
            }
        }
    }

    private static PipelineDriver golden(Golden golden, int slice, Gemm gemm) {
        List<Integer> slices = slice == 16 ? List.of(16) : List.of(8, 8);
        BatchShape batch = new BatchShape(1, 4, slices, 8);
        return new PipelineDriver(
                Devices.open(GPU.withGemm(gemm)),
                GptSettings.of(
                        golden.shape(),
                        StagePartition.byFlops(golden.shape(), 2),
                        batch,
                        Precision.FLOAT32,
                        OPTIMIZER,
                        42),
                Orders.oneForwardOneBackward(2, 4, slices.size()),
                golden.batches(1),
                golden.initial());
    }

    private static void assertGradients(Golden golden, PipelineDriver pipeline) {
        Map<String, float[]> gradients = pipeline.gradients();
        golden.firstGradients()
                .forEach(
                        (name, expected) -> {
                            float[] gradient = Objects.requireNonNull(gradients.get(name), name);
                            assertThat(relative(gradient, expected)).as(name).isLessThan(1e-5);
                        });
    }

    private static double relative(float[] actual, double[] expected) {
        double difference = 0;
        double norm = 0;
        for (int i = 0; i < expected.length; i++) {
            difference += Math.pow(actual[i] - expected[i], 2);
            norm += expected[i] * expected[i];
        }
        return Math.sqrt(difference / norm);
    }

    /** With our own products; cuBLAS sums as it likes. */
    @Test
    void slicesStagesAndOrdersOfThreadsDoNotChangeABit() {
        DeviceSettings own = GPU.withGemm(Gemm.KERNELS);
        Map<String, Object> whole = run(own, 1, List.of(16));

        assertThat(run(own, 1, List.of(8, 8))).isEqualTo(whole);
        assertThat(run(own.withGpu(EmulatedGpus.last()), 3, List.of(8, 4, 4))).isEqualTo(whole);
    }

    /** From the second step on all that stages compute comes again. */
    @ParameterizedTest
    @EnumSource(names = {"CUBLAS", "KERNELS"})
    void graphsChangeNoBitAndSpareLaunches(Gemm gemm) {
        EmulatedGpus.requireEmulated();
        DeviceSettings plain = GPU.withGemm(gemm);
        long start = EmulatedGpus.launches();
        Map<String, Object> expected = run(plain, 2, List.of(8, 8));
        long one = EmulatedGpus.launches();
        Map<String, Object> outcome = run(plain.withGraphs(true), 2, List.of(8, 8));
        long other = EmulatedGpus.launches();

        assertThat(outcome).isEqualTo(expected);
        assertThat(other - one).isLessThan((one - start) * 7 / 10);
    }

    /**
     * From the second step on: the first one finds out how much scratch it needs. At the end of a
     * step a stage waits for the norms of its gradients, and the last one for the losses as well.
     */
    @ParameterizedTest
    @CsvSource({"CUBLAS, BF16_KEPT", "KERNELS, FLOAT32"})
    void theHostWaitsOnceAnOp(Gemm gemm, Precision precision) {
        EmulatedGpus.requireEmulated();
        BatchShape batch = TinyRuns.batch(List.of(8, 8));
        try (PipelineDriver pipeline =
                new PipelineDriver(
                        Devices.open(GPU.withGemm(gemm)),
                        TinyRuns.settings(TinyRuns.TIED, 2, batch, precision),
                        Orders.oneForwardOneBackward(2, 3, 2),
                        TinyRuns.tokens(TinyRuns.TIED.vocabulary()),
                        TinyRuns.roughWeights())) {
            pipeline.train(1);
            Map<String, Long> waits = new LinkedHashMap<>();
            long[] before = {EmulatedGpus.waits()};
            pipeline.afterEach(
                    what -> {
                        long now = EmulatedGpus.waits();
                        waits.put(what + ", the " + waits.size() + "th", now - before[0]);
                        before[0] = now;
                    });

            pipeline.compute(2);
            pipeline.update(2, 1);
            pipeline.evaluate(1);

            int ops = 3 * 2 * 2 * 3;
            assertThat(waits).hasSize(ops + 2 * 5);
            waits.forEach(
                    (what, count) ->
                            assertThat(count)
                                    .as("waits of %s", what)
                                    .isLessThanOrEqualTo(what.startsWith("end of") ? 2 : 1));
        }
    }

    private static Map<String, Object> run(
            DeviceSettings settings, int stages, List<Integer> slices) {
        BatchShape batch = TinyRuns.batch(slices);
        try (PipelineDriver pipeline =
                new PipelineDriver(
                        Devices.open(settings),
                        TinyRuns.settings(TinyRuns.TIED, stages, batch),
                        Orders.oneForwardOneBackward(stages, 3, slices.size()),
                        TinyRuns.tokens(TinyRuns.TIED.vocabulary()),
                        TinyRuns.roughWeights())) {
            Map<String, Object> outcome = new TreeMap<>();
            for (int step = 1; step <= STEPS; step++) {
                outcome.put("loss " + step, pipeline.train(step));
            }
            pipeline.state().forEach((name, w) -> outcome.put(name, bits(w)));
            return outcome;
        }
    }

    private static List<Integer> bits(float[] values) {
        Integer[] bits = new Integer[values.length];
        Arrays.setAll(bits, i -> Float.floatToRawIntBits(values[i]));
        return List.of(bits);
    }

    @ParameterizedTest
    @CsvSource({"CUBLAS, BF16", "KERNELS, BF16", "CUBLAS, BF16_KEPT", "KERNELS, BF16_KEPT"})
    void bf16LossesAreThoseOfTheReferenceDevice(Gemm gemm, Precision precision) {
        DeviceSettings reference = DeviceSettings.DEFAULTS.withKind(Kind.REFERENCE);
        List<Double> expected = bf16Losses(reference, Precision.BF16);

        List<Double> losses = bf16Losses(GPU.withGemm(gemm), precision);

        for (int i = 0; i < expected.size(); i++) {
            assertThat(losses.get(i)).isCloseTo(expected.get(i), within(1e-3));
        }
    }

    private static List<Double> bf16Losses(DeviceSettings settings, Precision precision) {
        BatchShape batch = TinyRuns.batch(List.of(16));
        try (PipelineDriver pipeline =
                new PipelineDriver(
                        Devices.open(settings),
                        TinyRuns.settings(TinyRuns.TIED, 2, batch, precision),
                        Orders.oneForwardOneBackward(2, 3, 1),
                        TinyRuns.tokens(TinyRuns.TIED.vocabulary()),
                        TinyRuns.roughWeights())) {
            List<Double> losses = new ArrayList<>();
            for (int step = 1; step <= STEPS; step++) {
                losses.add(pipeline.train(step));
            }
            return losses;
        }
    }

    /** Also the workspace of cuBLAS, factors in bf16, and sums of blocks. */
    @ParameterizedTest
    @CsvSource({
        "CUBLAS, FLOAT32",
        "CUBLAS, BF16",
        "KERNELS, BF16",
        "CUBLAS, BF16_KEPT",
        "KERNELS, BF16_KEPT"
    })
    void whatItHoldsIsPredictedToTheByte(Gemm gemm, Precision precision) {
        GptSettings settings =
                TinyRuns.settings(TinyRuns.TIED, 1, TinyRuns.batch(List.of(8, 8)), precision);
        Device device = Devices.open(GPU.withGemm(gemm));
        try (PipelineDriver pipeline =
                new PipelineDriver(
                        device,
                        settings,
                        Orders.oneForwardOneBackward(1, 3, 2),
                        TinyRuns.tokens(TinyRuns.TIED.vocabulary()),
                        TinyRuns.roughWeights())) {
            CountedKernels counted = Devices.counting(GPU.withGemm(gemm));
            KernelRehearsal.of(
                    settings,
                    settings.role(0, RankPlace.single(0)),
                    RankPlace.single(0),
                    false,
                    counted,
                    List.of(settings.batch().context()));

            pipeline.train(1);

            assertThat(device.memory().peakBytes())
                    .isEqualTo(pipeline.stages().getFirst().memory().total() + counted.bytes());
        }
    }
}
