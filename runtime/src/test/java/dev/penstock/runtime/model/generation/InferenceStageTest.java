package dev.penstock.runtime.model.generation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.spi.StepKind;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.model.Orders;
import dev.penstock.runtime.model.PipelineDriver;
import dev.penstock.runtime.model.TinyRuns;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.Feed;
import dev.penstock.runtime.model.shape.FeedRows;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.Precision;
import dev.penstock.runtime.model.shape.StageRole;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** A stage that is the whole model, fed by hand. */
class InferenceStageTest {
    /** The grid of blocks is 128 tokens: some feeds end on it, some cross it. */
    private static final ModelShape LONG = ModelShape.gpt2(61, 300, 32, 2, 4, true);

    @ParameterizedTest
    @EnumSource(
            value = DeviceSettings.Kind.class,
            names = {"CPU", "REFERENCE"})
    void everyWayToFeedATextGivesTheSameBits(DeviceSettings.Kind kind) {
        int[] text = new int[290];
        Arrays.setAll(text, i -> i * i % 61);
        float[] atOnce = logits(kind, LONG, text, 290);

        assertThat(logits(kind, LONG, text, 128, 128, 34)).containsExactly(atOnce);
        assertThat(logits(kind, LONG, text, 100, 100, 90)).containsExactly(atOnce);
        int[] oneByOne = new int[291 - 128];
        Arrays.fill(oneByOne, 1);
        oneByOne[0] = 128;
        assertThat(logits(kind, LONG, text, oneByOne)).containsExactly(atOnce);
    }

    @Test
    void trainedStagesAndStagesOfInferenceAreOneModel() {
        GptSettings settings =
                TinyRuns.settings(TinyRuns.UNTIED, 2, BatchShape.unsliced(1, 1, 16, 4));
        int[] text = new int[17];
        TinyRuns.tokens(37).read(StepKind.EVALUATE, 0, 0, text);
        double sum = 0;
        for (int i = 0; i < 16; i++) {
            float[] logits = logits(DeviceSettings.Kind.REFERENCE, TinyRuns.UNTIED, text, i + 1);
            sum -= logProbability(logits, text[i + 1]);
        }

        try (var pipeline =
                new PipelineDriver(
                        settings,
                        Orders.gpipe(2, 1, 1),
                        TinyRuns.tokens(37),
                        TinyRuns.roughWeights())) {
            assertThat(sum / 16).isCloseTo(pipeline.evaluate(0), within(1e-5));
        }
    }

    @Test
    void itOnlyGoesForwardAndSharesNothing() {
        try (Device device = open(DeviceSettings.Kind.REFERENCE);
                InferenceStage stage = stage(device, LONG, new Fed(new int[1], 1))) {
            assertThatThrownBy(() -> stage.update(1, 1)).hasMessageContaining("forward only");
            assertThat(stage.sharedGradients()).isEmpty();
            assertThat(stage.memory().gradients()).isZero();
            assertThat(stage.memory().optimizer()).isZero();
        }
    }

    /** Logits after the last of these feeds. */
    private static float[] logits(
            DeviceSettings.Kind kind, ModelShape shape, int[] text, int... feeds) {
        Fed fed = new Fed(text, feeds);
        try (Device device = open(kind);
                InferenceStage stage = stage(device, shape, fed)) {
            for (int slice = 0; slice < feeds.length; slice++) {
                stage.forward(new WorkUnit(0, 0, slice), null, null);
            }
        }
        assertThat(fed.logits).hasSize(1);
        return fed.logits.getFirst();
    }

    private static Device open(DeviceSettings.Kind kind) {
        return Devices.open(DeviceSettings.DEFAULTS.withKind(kind).withThreads(2));
    }

    private static InferenceStage stage(Device device, ModelShape shape, TextFeed fed) {
        return InferenceStage.build(
                shape,
                new StageRole(0, 0, shape.layers(), true, true, 0, 1),
                Precision.FLOAT32,
                device,
                fed,
                TinyRuns.roughWeights());
    }

    private static double logProbability(float[] logits, int token) {
        double sum = 0;
        for (float logit : logits) {
            sum += Math.exp(logit);
        }
        return logits[token] - Math.log(sum);
    }

    /** One known text in feeds of given lengths, the last of which chooses. */
    private static final class Fed implements TextFeed {
        private final int[] text;
        private final List<Feed> feeds = new ArrayList<>();
        private final List<float[]> logits = new ArrayList<>();

        Fed(int[] text, int... lengths) {
            this.text = text;
            int from = 0;
            for (int i = 0; i < lengths.length; i++) {
                feeds.add(new Feed(from, lengths[i], from, i == lengths.length - 1));
                from += lengths[i];
            }
        }

        @Override
        public int texts() {
            return 1;
        }

        @Override
        public List<Integer> sliceRows() {
            return feeds.stream().map(Feed::count).toList();
        }

        @Override
        public int cachedTokens() {
            return feeds.getLast().end();
        }

        @Override
        public @Nullable FeedRows feed(int microBatch, int slice) {
            return FeedRows.of(List.of(0), List.of(feeds.get(slice)), _ -> 0);
        }

        @Override
        public int[] await(FeedRows rows) {
            Feed feed = rows.runs().getFirst().feed();
            return Arrays.copyOfRange(text, feed.from(), feed.end());
        }

        @Override
        public void choose(int number, int place, float[] chosen) {
            logits.add(chosen);
        }

        @Override
        public void stop() {}
    }
}
