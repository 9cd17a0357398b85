package dev.penstock.runtime.inference;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.generation.InferenceStage;
import dev.penstock.runtime.model.generation.Sampling;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.HeldWeights;
import dev.penstock.runtime.model.shape.StagePartition;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Models whose matrices are held in fewer bits than they were trained in. */
@Timeout(120)
class HeldWeightsTest {
    private static final ModelConfig MODEL = ModelConfig.gpt2(37, 32, 24, 3, 3, false);
    private static final List<int[]> PROMPTS =
            List.of(new int[] {3, 1, 4, 1, 5}, new int[] {9}, new int[] {2, 6, 5, 3, 5, 8, 9, 7});
    private static final Sampling WILD = new Sampling(1, 0, 1, 11);

    /** The truth multiplies, in doubles, what the integers stand for. */
    @ParameterizedTest
    @CsvSource({"1, false", "2, false", "5, true", "1, true"})
    void integersWriteWhatTheirScaledValuesWrite(int stages, boolean tied) {
        ModelConfig model = ModelConfig.gpt2(37, 32, 24, 3, 3, tied);
        PlainGpt whole = PlainGpt.random(model, 5);
        PlainGpt truth = PlainGpt.of(model, scaled(model, whole.source()));

        List<int[]> texts =
                run(
                        pipeline(model, HeldWeights.INT8, stages, whole.source()),
                        InferenceRequest.of(PROMPTS, 20, Sampling.greedy()));

        for (int i = 0; i < PROMPTS.size(); i++) {
            int[] text = Arrays.copyOf(PROMPTS.get(i), PROMPTS.get(i).length + 20);
            for (int length = PROMPTS.get(i).length; length < text.length; length++) {
                text[length] = likeliest(truth.logits(Arrays.copyOf(text, length))[length - 1]);
            }
            assertThat(texts.get(i))
                    .containsExactly(Arrays.copyOfRange(text, text.length - 20, text.length));
        }
    }

    private static int likeliest(double[] logits) {
        return IntStream.range(0, logits.length)
                .reduce((a, b) -> logits[b] > logits[a] ? b : a)
                .orElseThrow();
    }

    /** Every matrix and the table of tokens, row by row: at most 127 steps to either side of 0. */
    private static ParameterSource scaled(ModelConfig model, ParameterSource source) {
        return (name, piece, destination) -> {
            boolean known = source.fill(name, piece, destination);
            List<Integer> shape = Objects.requireNonNull(model.parameters().get(name));
            if (shape.size() == 2 && !name.equals("wpe.weight")) {
                for (int row = 0; row < shape.get(0); row++) {
                    scale(destination, (long) row * shape.get(1), shape.get(1));
                }
            }
            return known;
        };
    }

    private static void scale(MemorySegment floats, long first, int count) {
        float largest = 0;
        for (int i = 0; i < count; i++) {
            float value = floats.getAtIndex(ValueLayout.JAVA_FLOAT, first + i);
            largest = Math.max(largest, Math.abs(value));
        }
        float step = largest / 127;
        for (int i = 0; i < count; i++) {
            float value = floats.getAtIndex(ValueLayout.JAVA_FLOAT, first + i);
            float rounded = (float) Math.rint((double) value / step) * step;
            floats.setAtIndex(ValueLayout.JAVA_FLOAT, first + i, rounded);
        }
    }

    @ParameterizedTest
    @EnumSource
    void aTextHasTheSameTokensOnAnyNumberOfStagesAndBesideOthers(HeldWeights held) {
        ParameterSource source = PlainGpt.random(MODEL, 5).source();
        List<int[]> texts =
                run(pipeline(MODEL, held, 1, source), InferenceRequest.of(PROMPTS, 20, WILD));

        assertThat(run(pipeline(MODEL, held, 3, source), InferenceRequest.of(PROMPTS, 20, WILD)))
                .containsExactlyElementsOf(texts);
        assertThat(
                        run(
                                pipeline(MODEL, held, 1, source),
                                InferenceRequest.of(PROMPTS.subList(0, 1), 20, WILD)))
                .containsExactly(texts.getFirst());
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void fewerBitsTakeLessMemory(boolean tied) {
        ModelConfig model = ModelConfig.gpt2(1000, 32, 128, 3, 4, tied);
        double floats = parameterBytes(model, HeldWeights.FLOAT32);

        assertThat(parameterBytes(model, HeldWeights.BF16) / floats).isBetween(0.5, 0.52);
        assertThat(parameterBytes(model, HeldWeights.INT8) / floats).isBetween(0.25, 0.28);
    }

    private static double parameterBytes(ModelConfig model, HeldWeights held) {
        var texts =
                new Texts(
                        InferenceRequest.of(PROMPTS, 5, WILD),
                        1,
                        model.shape(),
                        16,
                        (_, _) -> true);
        try (Device device = Devices.open(DeviceSettings.DEFAULTS.withThreads(1));
                InferenceStage stage =
                        InferenceStage.build(
                                model.shape(),
                                StagePartition.byFlops(model.shape(), 1).role(0),
                                held.precision(),
                                held,
                                device,
                                texts,
                                ParameterSource.none())) {
            return stage.memory().parameters();
        }
    }

    @Test
    void wordsNameThem() {
        assertThat(HeldWeights.words()).containsExactly("float32", "bf16", "int8");
        assertThat(HeldWeights.of("int8")).contains(HeldWeights.INT8);
        assertThat(HeldWeights.of("fp4")).isEmpty();
        assertThat(HeldWeights.of("bf16").orElseThrow().narrow().orElseThrow().bytes() / 4.0)
                .isCloseTo(0.5, within(0.0));
    }

    private static List<int[]> run(PipelineInference pipeline, InferenceRequest request) {
        PipelineInference.Result result = pipeline.run(request, (_, _) -> true, _ -> {});
        assertThat(result.outcome()).isInstanceOf(RunOutcome.Completed.class);
        return result.texts().stream().map(Continuation::tokens).toList();
    }

    private static PipelineInference pipeline(
            ModelConfig model, HeldWeights held, int stages, ParameterSource weights) {
        return new PipelineInference(
                model.shape(),
                StagePartition.byFlops(model.shape(), stages),
                held,
                weights,
                _ -> Devices.open(DeviceSettings.DEFAULTS.withThreads(1)));
    }
}
