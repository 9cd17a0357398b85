package dev.penstock.runtime.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.spi.StepKind;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import java.util.Arrays;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class GptGeneratorTest {
    private static final int[] PROMPT = {3, 1, 4, 1, 5};

    private final Device device =
            Devices.open(DeviceSettings.DEFAULTS.withKind(DeviceSettings.Kind.REFERENCE));
    private final GptGenerator generator = generatorOn(device);

    private static GptGenerator generatorOn(Device device) {
        return new GptGenerator(
                device, TinyRuns.UNTIED, Precision.FLOAT32, TinyRuns.roughWeights());
    }

    @AfterEach
    void closeDevice() {
        generator.close();
        device.close();
    }

    @BeforeEach
    void restart() {
        generator.restart();
    }

    @Test
    void feedingTokenByTokenGivesTheLogitsOfFeedingAtOnce() {
        int[] text = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5};
        generator.feed(text, 0, text.length);
        float[] atOnce = generator.logits();

        generator.restart();
        generator.feed(text, 0, 4);
        for (int i = 4; i < text.length; i++) {
            generator.feed(text, i, i + 1);
        }

        assertThat(generator.logits()).containsExactly(atOnce);
    }

    @Test
    void greedyTextIsTheMostLikelyTokenEachTime() {
        int[] generated = generator.generate(PROMPT, 8, Sampling.greedy(), token -> true);

        int[] text = PROMPT;
        for (int token : generated) {
            generator.restart();
            generator.feed(text, 0, text.length);
            float[] logits = generator.logits();
            assertThat(logits[token]).isEqualTo(max(logits));
            text = append(text, token);
        }
    }

    @Test
    void theSameSeedGivesTheSameTextAndAnotherSeedAnother() {
        Sampling sampling = new Sampling(1, 0, 1, 1);

        int[] first = generator.generate(PROMPT, 10, sampling, token -> true);

        assertThat(generator.generate(PROMPT, 10, sampling, token -> true)).isEqualTo(first);
        assertThat(generator.generate(PROMPT, 10, new Sampling(1, 0, 1, 2), token -> true))
                .isNotEqualTo(first);
    }

    @Test
    void textMayOutgrowTheContext() {
        int[] generated = generator.generate(PROMPT, 50, Sampling.greedy(), token -> true);

        assertThat(generated).hasSize(50);
    }

    @Test
    void anOverlongPromptCountsByItsLastTokens() {
        int[] longPrompt = IntStream.range(0, 30).toArray();
        int[] lastTokens = Arrays.copyOfRange(longPrompt, 14, 30);

        assertThat(generator.generate(longPrompt, 5, Sampling.greedy(), token -> true))
                .isEqualTo(generator.generate(lastTokens, 5, Sampling.greedy(), token -> true));
    }

    @Test
    void theListenerEndsTheText() {
        int[] generated = generator.generate(PROMPT, 50, Sampling.greedy(), token -> false);

        assertThat(generated).hasSize(1);
    }

    @Test
    void trainedStagesAndTheGeneratorAreOneModel() {
        GptSettings settings =
                TinyRuns.settings(TinyRuns.UNTIED, 2, BatchShape.unsliced(1, 1, 16, 4));
        int[] text = new int[17];
        TinyRuns.tokens(37).read(StepKind.EVALUATE, 0, 0, text);
        ParameterSource weights = TinyRuns.roughWeights();
        double sum = 0;
        try (PipelineDriver pipeline =
                        new PipelineDriver(
                                settings, Orders.gpipe(2, 1, 1), TinyRuns.tokens(37), weights);
                GptGenerator same =
                        new GptGenerator(device, TinyRuns.UNTIED, Precision.FLOAT32, weights)) {
            double loss = pipeline.evaluate(0);

            for (int i = 0; i < 16; i++) {
                same.feed(text, i, i + 1);
                sum -= logProbability(same.logits(), text[i + 1]);
            }
            assertThat(sum / 16).isCloseTo(loss, within(1e-5));
        }
    }

    @Test
    void badPromptsAreRefused() {
        assertThatThrownBy(
                        () -> generator.generate(new int[0], 1, Sampling.greedy(), token -> true))
                .hasMessageContaining("at least 1 token");
        assertThatThrownBy(
                        () ->
                                generator.generate(
                                        new int[] {1, 37, -1}, 1, Sampling.greedy(), token -> true))
                .hasMessageContaining("tokens 0 to 36")
                .hasMessageContaining("[37, -1]");
    }

    private static double logProbability(float[] logits, int token) {
        double sum = 0;
        for (float logit : logits) {
            sum += Math.exp(logit);
        }
        return logits[token] - Math.log(sum);
    }

    private static float max(float[] values) {
        float max = Float.NEGATIVE_INFINITY;
        for (float value : values) {
            max = Math.max(max, value);
        }
        return max;
    }

    private static int[] append(int[] text, int token) {
        int[] longer = Arrays.copyOf(text, text.length + 1);
        longer[text.length] = token;
        return longer;
    }
}
