package dev.penstock.runtime.inference;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.inference.Continuation.End;
import dev.penstock.runtime.model.GoldenFamily;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.generation.Sampling;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.BlockDesign;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.Positions;
import dev.penstock.runtime.model.shape.Precision;
import dev.penstock.runtime.model.shape.StagePartition;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalInt;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Whole pipelines: actors, data plane and devices, all in this process. */
@Timeout(120)
class PipelineInferenceTest {
    private static final ModelConfig MODEL = ModelConfig.gpt2(37, 16, 24, 3, 3, false);
    private static final PlainGpt TRUTH = PlainGpt.random(MODEL, 5);
    private static final List<int[]> PROMPTS =
            List.of(new int[] {3, 1, 4, 1, 5}, new int[] {9}, new int[] {2, 6, 5, 3, 5, 8, 9, 7});
    private static final Sampling WILD = new Sampling(1, 0, 1, 11);

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 5})
    void theLikeliestTokensAreThoseOfAPlainForwardOverTheWholeWindow(int stages) {
        var request = InferenceRequest.of(PROMPTS, 20, Sampling.greedy());

        List<Continuation> texts = run(stages, request);

        for (int i = 0; i < PROMPTS.size(); i++) {
            assertThat(texts.get(i).end()).isEqualTo(End.LENGTH);
            assertThat(texts.get(i).tokens()).containsExactly(plain(PROMPTS.get(i), 20));
        }
    }

    /** A text that outgrows the context goes on from the younger half of it. */
    private static int[] plain(int[] prompt, int count) {
        int[] text = Arrays.copyOf(prompt, prompt.length + count);
        int start = 0;
        for (int length = prompt.length; length < text.length; length++) {
            if (length - start > MODEL.shape().context()) {
                start = length - MODEL.shape().context() / 2;
            }
            double[][] logits = TRUTH.logits(Arrays.copyOfRange(text, start, length));
            text[length] = likeliest(logits[length - start - 1]);
        }
        return Arrays.copyOfRange(text, prompt.length, text.length);
    }

    private static int likeliest(double[] logits) {
        return IntStream.range(0, logits.length)
                .reduce((a, b) -> logits[b] > logits[a] ? b : a)
                .orElseThrow();
    }

    @Test
    void aSeedGivesTheSameTextsOnAnyNumberOfStagesWithAndWithoutCaches() {
        var cached = InferenceRequest.of(PROMPTS, 24, WILD);
        var plain = new InferenceRequest(PROMPTS, 24, WILD, OptionalInt.empty(), false);
        List<int[]> texts = tokens(run(1, cached));

        assertThat(tokens(run(2, cached))).containsExactlyElementsOf(texts);
        assertThat(tokens(run(2, plain))).containsExactlyElementsOf(texts);
        var otherSeed = InferenceRequest.of(PROMPTS, 24, new Sampling(1, 0, 1, 12));
        assertThat(tokens(run(2, otherSeed)).getFirst()).isNotEqualTo(texts.getFirst());
    }

    /** Those that have ended, too: what is beside a text is no business of its. */
    @Test
    void aTextHasTheSameTokensAloneAsBesideOthers() {
        List<int[]> texts = tokens(run(1, InferenceRequest.of(PROMPTS, 24, WILD)));

        for (int first = 1; first <= PROMPTS.size(); first++) {
            var request = InferenceRequest.of(PROMPTS.subList(0, first), 24, WILD);
            assertThat(tokens(run(1, request))).containsExactlyElementsOf(texts.subList(0, first));
        }
        int ending = texts.get(0)[3];
        List<Continuation> ended =
                run(1, new InferenceRequest(PROMPTS, 24, WILD, OptionalInt.of(ending), true));
        for (int i = 0; i < PROMPTS.size(); i++) {
            int[] tokens = ended.get(i).tokens();
            assertThat(tokens).containsExactly(Arrays.copyOf(texts.get(i), tokens.length));
        }
        assertThat(ended.getFirst().tokens()).hasSizeLessThan(4);
    }

    @Test
    void textsOfOnePromptDiffer() {
        int[] prompt = PROMPTS.getFirst();

        List<int[]> texts = tokens(run(1, InferenceRequest.of(List.of(prompt, prompt), 20, WILD)));

        assertThat(texts.get(0)).isNotEqualTo(texts.get(1));
    }

    @Test
    void theEndOfTextTokenEndsATextAndIsNoPartOfIt() {
        int[] whole = plain(PROMPTS.getFirst(), 20);
        int end = whole[7];
        int first = IntStream.range(0, 20).filter(i -> whole[i] == end).findFirst().orElseThrow();
        var request =
                new InferenceRequest(
                        PROMPTS.subList(0, 1), 20, Sampling.greedy(), OptionalInt.of(end), true);

        Continuation text = run(2, request).getFirst();

        assertThat(text.end()).isEqualTo(End.END_OF_TEXT);
        assertThat(text.tokens()).containsExactly(Arrays.copyOf(whole, first));
    }

    @Test
    void theListenerHearsEveryTokenInOrderAndMayEndAText() {
        List<List<Integer>> heard =
                List.of(new ArrayList<>(), new ArrayList<>(), new ArrayList<>());
        List<Integer> ended = new ArrayList<>();
        var listener =
                new TokenListener() {
                    @Override
                    public boolean onToken(int text, int token) {
                        heard.get(text).add(token);
                        return text != 1 || heard.get(1).size() < 4;
                    }

                    @Override
                    public void onEnd(int text) {
                        ended.add(text);
                    }
                };

        List<Continuation> texts =
                pipeline(2, TRUTH.source())
                        .run(InferenceRequest.of(PROMPTS, 12, WILD), listener, _ -> {})
                        .texts();

        assertThat(texts).extracting(text -> text.tokens().length).containsExactly(12, 4, 12);
        assertThat(texts.get(1).end()).isEqualTo(End.STOPPED);
        for (int i = 0; i < 3; i++) {
            assertThat(Arrays.stream(texts.get(i).tokens()).boxed().toList())
                    .isEqualTo(heard.get(i));
        }
        assertThat(ended).containsExactlyInAnyOrder(0, 1, 2);
    }

    @Test
    void anInterruptEndsAllTextsSoon() {
        var stop = new AtomicReference<Runnable>(() -> {});

        PipelineInference.Result result =
                pipeline(2, TRUTH.source())
                        .run(
                                InferenceRequest.of(PROMPTS, 2_000, WILD),
                                (_, _) -> {
                                    stop.get().run();
                                    return true;
                                },
                                stop::set);

        assertThat(result.outcome()).isInstanceOf(RunOutcome.Completed.class);
        assertThat(result.texts())
                .allSatisfy(text -> assertThat(text.end()).isEqualTo(End.STOPPED))
                .allSatisfy(text -> assertThat(text.tokens()).hasSizeLessThan(2_000));
    }

    /** The first stage waits for a token that will never come: it must not wait for long. */
    @Test
    void aStageThatFailsEndsTheOthersAndIsNamed() {
        PipelineInference.Result result =
                pipeline(2, TRUTH.source())
                        .run(
                                InferenceRequest.of(PROMPTS, 20, WILD),
                                (_, _) -> {
                                    throw new IllegalStateException("the terminal is gone");
                                },
                                _ -> {});

        assertThat(result.outcome())
                .isInstanceOfSatisfying(
                        RunOutcome.Failed.class,
                        failed ->
                                assertThat(failed.reason())
                                        .contains("rank 1", "1F0s0", "the terminal is gone"));
        assertThat(result.texts()).extracting(Continuation::end).contains(End.STOPPED);
    }

    /**
     * Places that turn heads go on without end: a text that outgrows the context has the tokens of
     * a model that reads all of it and sees as many tokens at a time.
     */
    @ParameterizedTest
    @ValueSource(strings = {"llama", "mistral", "qwen3", "retnet", "retnet-mixed"})
    void aWindowSlidesOverATextWhoseHeadsTurn(String family) {
        var golden = new GoldenFamily(family);
        ModelShape shape = golden.shape();
        var cached = InferenceRequest.of(PROMPTS, 80, WILD);
        var again = new InferenceRequest(PROMPTS, 80, WILD, OptionalInt.empty(), false);

        List<int[]> texts = tokens(run(pipeline(1, shape, golden.initial()), cached));

        assertThat(tokens(run(pipeline(1, reading(shape, 96), golden.initial()), cached)))
                .containsExactlyElementsOf(texts);
        assertThat(tokens(run(pipeline(2, shape, golden.initial()), cached)))
                .containsExactlyElementsOf(texts);
        assertThat(tokens(run(pipeline(1, shape, golden.initial()), again)))
                .containsExactlyElementsOf(texts);
    }

    /** The model with longer sequences, whose tokens see no more than before. */
    private static ModelShape reading(ModelShape shape, int tokens) {
        BlockDesign block = shape.block();
        var turned = (Positions.Rotary) shape.positions();
        List<Integer> windows =
                IntStream.range(0, shape.layers())
                        .map(layer -> block.window(layer))
                        .mapToObj(w -> w == BlockDesign.ALL ? shape.context() : w)
                        .toList();
        return new ModelShape(
                shape.vocabulary(),
                tokens,
                shape.width(),
                shape.layers(),
                new BlockDesign(
                        block.norm(),
                        block.heads(),
                        block.biases(),
                        block.activation(),
                        block.hidden(),
                        block.windows().isEmpty() && block.retains() ? List.of() : windows),
                new Positions.Rotary(tokens, turned.theta(), turned.stretch(), turned.neighbours()),
                shape.tied());
    }

    @Test
    void badRequestsAreRefused() {
        assertThatThrownBy(() -> InferenceRequest.of(List.of(new int[0]), 1, WILD))
                .hasMessageContaining("at least 1 token");
        assertThatThrownBy(() -> InferenceRequest.of(PROMPTS, 0, WILD))
                .hasMessageContaining("1 token or more");
        assertThatThrownBy(() -> run(1, InferenceRequest.of(List.of(new int[] {1, 37}), 1, WILD)))
                .hasMessageContaining("tokens 0 to 36")
                .hasMessageContaining("37");
    }

    private static List<int[]> tokens(List<Continuation> texts) {
        return texts.stream().map(Continuation::tokens).toList();
    }

    private static List<Continuation> run(int stages, InferenceRequest request) {
        return run(pipeline(stages, TRUTH.source()), request);
    }

    private static List<Continuation> run(PipelineInference pipeline, InferenceRequest request) {
        PipelineInference.Result result = pipeline.run(request, (_, _) -> true, _ -> {});
        assertThat(result.outcome()).isInstanceOf(RunOutcome.Completed.class);
        return result.texts();
    }

    private static PipelineInference pipeline(int stages, ParameterSource weights) {
        return pipeline(stages, MODEL.shape(), weights);
    }

    private static PipelineInference pipeline(
            int stages, ModelShape shape, ParameterSource weights) {
        return new PipelineInference(
                shape,
                StagePartition.byFlops(shape, stages),
                Precision.FLOAT32,
                weights,
                _ -> Devices.open(DeviceSettings.DEFAULTS.withThreads(1)));
    }
}
