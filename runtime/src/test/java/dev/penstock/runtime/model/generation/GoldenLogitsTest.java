package dev.penstock.runtime.model.generation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.model.GoldenFamily;
import dev.penstock.runtime.model.shape.Feed;
import dev.penstock.runtime.model.shape.FeedRows;
import dev.penstock.runtime.model.shape.Precision;
import dev.penstock.runtime.model.shape.StageRole;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Logits of every family over kept keys and values, token by token and in longer feeds. */
class GoldenLogitsTest {
    private static final List<List<Integer>> FEEDS =
            List.of(
                    List.of(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1),
                    List.of(7, 1, 1, 6, 1),
                    List.of(16));

    static Stream<Arguments> models() {
        return Stream.of(
                        "llama",
                        "llama3",
                        "mistral",
                        "qwen2",
                        "qwen3",
                        "gpt2-variants",
                        "gpt3",
                        "retnet",
                        "retnet-mixed")
                .flatMap(
                        family ->
                                Stream.of(DeviceSettings.Kind.REFERENCE, DeviceSettings.Kind.CPU)
                                        .map(kind -> Arguments.of(family, kind)));
    }

    @ParameterizedTest(name = "{0} on {1}")
    @MethodSource("models")
    void logitsAreTheGoldenOnes(String family, DeviceSettings.Kind kind) {
        var golden = new GoldenFamily(family);
        double[] expected = golden.logits();
        int vocabulary = golden.shape().vocabulary();
        for (List<Integer> lengths : FEEDS) {
            Fed fed = new Fed(golden.firstSequence(), lengths);
            run(golden, kind, fed);
            for (int i = 0; i < lengths.size(); i++) {
                int last = fed.feeds.get(i).end() - 1;
                for (int v = 0; v < vocabulary; v++) {
                    assertThat((double) fed.logits.get(i)[v])
                            .as("token %d of the vocabulary after position %d", v, last)
                            .isCloseTo(expected[last * vocabulary + v], within(1e-5));
                }
            }
        }
    }

    private static void run(GoldenFamily golden, DeviceSettings.Kind kind, Fed fed) {
        try (Device device = Devices.open(DeviceSettings.DEFAULTS.withKind(kind).withThreads(2));
                InferenceStage stage =
                        InferenceStage.build(
                                golden.shape(),
                                new StageRole(0, 0, golden.shape().layers(), true, true, 0, 1),
                                Precision.FLOAT32,
                                device,
                                fed,
                                golden.initial())) {
            for (int slice = 0; slice < fed.feeds.size(); slice++) {
                stage.forward(new WorkUnit(0, 0, slice), null, null);
            }
        }
    }

    /** One known text in feeds of given lengths, each of which chooses. */
    private static final class Fed implements TextFeed {
        private final int[] text;
        private final List<Feed> feeds = new ArrayList<>();
        private final List<float[]> logits = new ArrayList<>();

        Fed(int[] text, List<Integer> lengths) {
            this.text = text;
            int from = 0;
            for (int length : lengths) {
                feeds.add(new Feed(from, length, from, true));
                from += length;
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
