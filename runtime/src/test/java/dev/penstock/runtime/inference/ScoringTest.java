package dev.penstock.runtime.inference;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.evaluation.Score;
import dev.penstock.runtime.evaluation.Window;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.generation.InferenceStage;
import dev.penstock.runtime.model.generation.Sampling;
import dev.penstock.runtime.model.generation.TextFeed;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.Feed;
import dev.penstock.runtime.model.shape.FeedRows;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.Precision;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.runtime.model.shape.StageRole;
import dev.penstock.schedules.ir.WorkUnit;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Whole pipelines: actors, data plane and devices, all in this process. */
@Timeout(300)
class ScoringTest {
    private static final ModelConfig MODEL = ModelConfig.gpt2(37, 16, 24, 3, 3, false);
    private static final PlainGpt TRUTH = PlainGpt.random(MODEL, 5);
    private static final int[] ROW = new Random(8).ints(300, 0, 37).toArray();

    /** Of all lengths, overlapping, with one target or many: more than fit into a pass. */
    private static List<Window> windows() {
        Random random = new Random(9);
        List<Window> windows = new ArrayList<>();
        for (int i = 0; i < 150; i++) {
            int count = 2 + random.nextInt(16);
            int from = random.nextInt(ROW.length - count);
            windows.add(new Window(ROW, from, count, 1 + random.nextInt(count - 1)));
        }
        return windows;
    }

    @Test
    void scoresAreThoseOfAPlainForwardAndHaveTheSameBitsOnAnyNumberOfStages() {
        List<Window> windows = windows();
        AtomicInteger told = new AtomicInteger();

        List<Score> scores = scored(pipeline(1).score(windows, told::set, _ -> {}));

        assertThat(told).hasValue(150);
        for (int i = 0; i < windows.size(); i++) {
            assertThat(scores.get(i).logLikelihood())
                    .isCloseTo(plain(windows.get(i)), within(1e-4));
        }
        for (int stages : List.of(2, 4)) {
            assertThat(scored(pipeline(stages).score(windows, _ -> {}, _ -> {})))
                    .containsExactlyElementsOf(scores);
        }
    }

    private static double plain(Window window) {
        int[] inputs = new int[window.inputs()];
        Arrays.setAll(inputs, window::token);
        double[][] logits = TRUTH.logits(inputs);
        double sum = 0;
        for (int i = window.inputs() - window.targets(); i < window.inputs(); i++) {
            sum -= PlainGpt.surprise(logits[i], window.token(i + 1));
        }
        return sum;
    }

    @Test
    void aWindowHasTheSameBitsWhateverIsBesideIt() {
        List<Window> windows = windows().subList(0, 40);
        List<Score> scores = scored(pipeline(1).score(windows, _ -> {}, _ -> {}));

        List<Window> reversed = new ArrayList<>(windows.subList(5, 40));
        Collections.reverse(reversed);

        List<Score> expected = new ArrayList<>(scores.subList(5, 40));
        Collections.reverse(expected);
        assertThat(scored(pipeline(1).score(reversed, _ -> {}, _ -> {})))
                .containsExactlyElementsOf(expected);
        assertThat(scored(pipeline(1).score(windows.subList(0, 1), _ -> {}, _ -> {})))
                .containsExactly(scores.getFirst());
    }

    /** Each with the keys and values that were kept of those before it. */
    @Test
    void aWindowIsScoredAsItsTokensAreFedOneByOne() {
        var whole = new Window(ROW, 3, 17, 16);
        var fed = new OneByOne(whole);
        try (Device device = device();
                InferenceStage stage =
                        InferenceStage.build(
                                MODEL.shape(),
                                new StageRole(0, 0, 3, true, true, 0, 1),
                                Precision.FLOAT32,
                                device,
                                fed,
                                TRUTH.source())) {
            for (int slice = 0; slice < whole.inputs(); slice++) {
                stage.forward(new WorkUnit(0, 0, slice), null, null);
            }
        }

        Score score = scored(pipeline(1).score(List.of(whole), _ -> {}, _ -> {})).getFirst();

        assertThat(score.logLikelihood()).isEqualTo(fed.logLikelihood);
    }

    private static final class OneByOne implements TextFeed {
        private final Window window;
        private double logLikelihood;

        OneByOne(Window window) {
            this.window = window;
        }

        @Override
        public int texts() {
            return 1;
        }

        @Override
        public List<Integer> sliceRows() {
            return Collections.nCopies(window.inputs(), 1);
        }

        @Override
        public int cachedTokens() {
            return window.inputs();
        }

        @Override
        public FeedRows feed(int microBatch, int slice) {
            return FeedRows.of(List.of(0), List.of(new Feed(slice, 1, slice, true)), _ -> 0);
        }

        @Override
        public int[] await(FeedRows rows) {
            return new int[] {window.token(rows.runs().getFirst().feed().from())};
        }

        @Override
        public void choose(int text, int place, float[] logits) {
            float largest = logits[0];
            for (float logit : logits) {
                largest = Math.max(largest, logit);
            }
            double sum = 0;
            for (float logit : logits) {
                sum += Math.exp((double) logit - largest);
            }
            double likelihood = (double) logits[window.token(place + 1)] - largest;
            logLikelihood += likelihood - Math.log(sum);
        }

        @Override
        public void stop() {}
    }

    @Test
    void anInterruptLeavesNoScores() {
        var stop = new AtomicReference<Runnable>(() -> {});

        PipelineInference.Scores scores =
                pipeline(2).score(windows(), _ -> stop.get().run(), stop::set);

        assertThat(scores.outcome()).isInstanceOf(RunOutcome.Completed.class);
        assertThat(scores.scores()).isEmpty();
    }

    @Test
    void weightsThatAreNoNumbersAreNamedAndGiveNoScores() {
        ParameterSource broken =
                (name, piece, destination) -> {
                    boolean has = TRUTH.source().fill(name, piece, destination);
                    if (name.equals("h.1.mlp.c_fc.bias")) {
                        destination.setAtIndex(ValueLayout.JAVA_FLOAT, 7, Float.NaN);
                    }
                    return has;
                };

        PipelineInference.Scores scores = pipeline(2, broken).score(windows(), _ -> {}, _ -> {});

        assertThat(scores.scores()).isEmpty();
        assertThat(scores.outcome())
                .isInstanceOfSatisfying(
                        RunOutcome.Failed.class,
                        failed ->
                                assertThat(failed.reason())
                                        .contains(
                                                "h.1.mlp.c_fc.bias: expected finite numbers, got"
                                                        + " NaN"));
    }

    /** Every weight is a number, and their products are too large for one. */
    @Test
    void logitsThatOverflowGiveNoScoresAndNoText() {
        ParameterSource huge =
                (name, piece, destination) -> {
                    boolean has = TRUTH.source().fill(name, piece, destination);
                    if (name.equals("lm_head.weight") || name.equals("ln_f.weight")) {
                        for (long i = 0; i < piece.elements(); i++) {
                            destination.setAtIndex(ValueLayout.JAVA_FLOAT, i, 1e38f);
                        }
                    }
                    return has;
                };

        PipelineInference.Scores scores = pipeline(1, huge).score(windows(), _ -> {}, _ -> {});
        PipelineInference.Result text =
                pipeline(1, huge)
                        .run(
                                InferenceRequest.of(List.of(new int[] {1}), 3, Sampling.greedy()),
                                (_, _) -> true,
                                _ -> {});

        for (RunOutcome outcome : List.of(scores.outcome(), text.outcome())) {
            assertThat(outcome)
                    .isInstanceOfSatisfying(
                            RunOutcome.Failed.class,
                            failed ->
                                    assertThat(failed.reason())
                                            .contains("logits: expected finite numbers"));
        }
        assertThat(text.texts().getFirst().tokens()).isEmpty();
    }

    @Test
    void tokensThatTheModelDoesNotHaveAreRefused() {
        var bad = new Window(new int[] {1, 37}, 0, 2, 1);

        assertThatThrownBy(() -> pipeline(1).score(List.of(bad), _ -> {}, _ -> {}))
                .hasMessageContaining("tokens 0 to 36")
                .hasMessageContaining("37");
        assertThat(pipeline(1).score(List.of(), _ -> {}, _ -> {}).scores()).isEmpty();
    }

    private static List<Score> scored(PipelineInference.Scores scores) {
        assertThat(scores.outcome()).isInstanceOf(RunOutcome.Completed.class);
        return scores.scores();
    }

    private static Device device() {
        return Devices.open(DeviceSettings.DEFAULTS.withThreads(1));
    }

    private static PipelineInference pipeline(int stages) {
        return pipeline(stages, TRUTH.source());
    }

    private static PipelineInference pipeline(int stages, ParameterSource weights) {
        ModelShape shape = MODEL.shape();
        return new PipelineInference(
                shape,
                StagePartition.byFlops(shape, stages),
                Precision.FLOAT32,
                weights,
                _ -> device());
    }
}
