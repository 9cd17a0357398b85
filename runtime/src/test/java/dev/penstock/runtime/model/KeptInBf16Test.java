package dev.penstock.runtime.model;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Gemm;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.runtime.gpu.EmulatedGpus;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.FineTuning;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.Precision;
import dev.penstock.schedules.ir.Schedule;
import java.nio.IntBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Kernels that write bf16 round at the places where products would round: no bit of a run depends
 * on which of them does it. On a GPU, emulated where there is none. Without cublasLt, whose
 * products round what they write.
 */
@Tag("gpu")
class KeptInBf16Test {
    private static final DeviceSettings GPU = DeviceSettings.DEFAULTS.withKind(Kind.CUDA);
    private static final String JOINED = "penstock.cublaslt";
    private static final int MICRO_BATCHES = 2;
    private static final List<Integer> WHOLE = List.of(16);
    private static final List<Integer> CUT = List.of(8, 8);

    @BeforeAll
    static void gpus() {
        EmulatedGpus.require();
        System.setProperty(JOINED, "none");
    }

    @AfterAll
    static void withCublasLtAgain() {
        System.clearProperty(JOINED);
    }

    @ParameterizedTest
    @EnumSource(names = {"CUBLAS", "KERNELS"})
    void aRunOfGpt2IsTheSame(Gemm gemm) {
        expectSame(gemm, gpt2(1, WHOLE), Orders.oneForwardOneBackward(1, MICRO_BATCHES, 1));
        expectSame(gemm, gpt2(2, CUT), Orders.oneForwardOneBackward(2, MICRO_BATCHES, 2));
    }

    @Test
    void backwardsInTwoPartsAndRecomputedBlocksAreTheSame() {
        Schedule order = Orders.oneForwardOneBackward(2, MICRO_BATCHES, 2);
        GptSettings cut = gpt2(2, CUT);

        expectSame(Gemm.CUBLAS, cut, Orders.split(order, 1));
        expectSame(Gemm.CUBLAS, TinyRuns.recomputing(cut, Set.of(0, 2)), order);
        expectSame(Gemm.CUBLAS, TinyRuns.recomputing(cut, Set.of(0, 1)), Orders.split(order, 1));
    }

    /** Root mean squares, gates and heads with norms; widths that are no multiples of 8. */
    @ParameterizedTest
    @ValueSource(strings = {"qwen3", "gpt2-variants"})
    void aRunOfAnotherFamilyIsTheSame(String family) {
        ModelShape shape = TinyFamilies.shape(family);
        var batch = new BatchShape(1, MICRO_BATCHES, List.of(64), 16);
        Schedule order = Orders.oneForwardOneBackward(1, MICRO_BATCHES, 1);

        expectSame(Gemm.CUBLAS, TinyRuns.settings(shape, 1, batch), order);
    }

    @Test
    void aRunThatTrainsAdaptersIsTheSame() {
        FineTuning plain = new GoldenAdapter().fineTuning();
        FineTuning dropping =
                new FineTuning(
                        plain.adapters().map(adapters -> adapters.dropping(0.3)), plain.freeze());
        Schedule order = Orders.oneForwardOneBackward(1, MICRO_BATCHES, 1);

        for (FineTuning adapters : List.of(plain, dropping)) {
            expectSame(Gemm.CUBLAS, gpt2(1, WHOLE).training(adapters), order);
        }
    }

    @Test
    void aRunWithDropoutIsTheSame() {
        GptSettings dropping = gpt2(2, CUT).dropping(0.3);
        Schedule order = Orders.oneForwardOneBackward(2, MICRO_BATCHES, 2);

        expectSame(Gemm.CUBLAS, dropping, order);
        expectSame(Gemm.CUBLAS, TinyRuns.recomputing(dropping, Set.of(0)), Orders.split(order, 1));
    }

    @ParameterizedTest(name = "rows divided: {0}")
    @CsvSource({"false", "true"})
    void tensorShardsAreTheSame(boolean sequence) {
        GptSettings sharded =
                TinyRuns.sharded(
                        TinyRuns.settings(
                                ModelShape.gpt2(37, 16, 24, 2, 2, true),
                                1,
                                new BatchShape(2, MICRO_BATCHES, WHOLE, 4)),
                        2);
        GptSettings settings = sequence ? TinyRuns.sequenceParallel(sharded) : sharded;

        assertThat(shards(in(settings, Precision.BF16_KEPT)))
                .isEqualTo(shards(in(settings, Precision.BF16)));
    }

    private static GptSettings gpt2(int stages, List<Integer> slices) {
        return TinyRuns.settings(
                TinyRuns.TIED, stages, new BatchShape(2, MICRO_BATCHES, slices, 4));
    }

    private static GptSettings in(GptSettings s, Precision precision) {
        return new GptSettings(
                s.shape(),
                s.partition(),
                s.batch(),
                precision,
                s.optimizer(),
                s.seed(),
                s.recomputedBlocks(),
                s.grid(),
                s.zero(),
                s.sequence(),
                s.fineTuning(),
                s.dropout(),
                s.gradientSum(),
                s.outer());
    }

    private static void expectSame(Gemm gemm, GptSettings settings, Schedule order) {
        assertThat(run(gemm, in(settings, Precision.BF16_KEPT), order))
                .isEqualTo(run(gemm, in(settings, Precision.BF16), order));
    }

    private static Map<String, Object> run(Gemm gemm, GptSettings settings, Schedule order) {
        try (var pipeline =
                new PipelineDriver(
                                Devices.open(GPU.withGemm(gemm)),
                                settings,
                                order,
                                TinyRuns.tokens(settings.shape().vocabulary()),
                                TinyRuns.roughWeights())
                        .clippingTo(1)) {
            Map<String, Object> outcome = new TreeMap<>();
            for (int step = 1; step <= 2; step++) {
                outcome.put("loss " + step, pipeline.train(step));
                outcome.put("norm " + step, pipeline.gradientNorm());
            }
            pipeline.state().forEach((name, values) -> outcome.put(name, bits(values)));
            outcome.put("evaluated", pipeline.evaluate(0));
            return outcome;
        }
    }

    private static Map<String, Object> shards(GptSettings settings) {
        try (var pipelines =
                new ShardedPipelines(
                        GPU.withGemm(Gemm.KERNELS),
                        settings,
                        Orders.oneForwardOneBackward(1, MICRO_BATCHES, 1),
                        TinyRuns.tokens(settings.shape().vocabulary()),
                        TinyRuns.roughWeights())) {
            Map<String, Object> outcome = new TreeMap<>();
            outcome.put("loss 1", pipelines.train(1));
            outcome.put("loss 2", pipelines.train(2));
            pipelines.state().forEach((name, values) -> outcome.put(name, bits(values)));
            return outcome;
        }
    }

    /** Compared by content. */
    private static IntBuffer bits(float[] values) {
        int[] bits = new int[values.length];
        Arrays.setAll(bits, i -> Float.floatToRawIntBits(values[i]));
        return IntBuffer.wrap(bits);
    }
}
