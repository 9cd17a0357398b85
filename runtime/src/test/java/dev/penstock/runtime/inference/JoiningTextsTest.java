package dev.penstock.runtime.inference;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.inference.Continuation.End;
import dev.penstock.runtime.model.GoldenFamily;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.generation.Sampling;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.Precision;
import dev.penstock.runtime.model.shape.StagePartition;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Texts that come and go in whole pipelines. */
@Timeout(120)
class JoiningTextsTest {
    private static final ModelConfig MODEL = ModelConfig.gpt2(37, 16, 24, 3, 3, false);
    private static final PlainGpt TRUTH = PlainGpt.random(MODEL, 5);
    private static final Duration SOON = Duration.ofSeconds(60);

    /** A pipeline that works in the background. */
    private record Service(
            PipelineInference pipeline,
            JoiningTexts texts,
            CompletableFuture<RunOutcome> outcome,
            AtomicReference<Runnable> stop)
            implements AutoCloseable {
        static Service start(PipelineInference pipeline, JoiningTexts.Limits limits) {
            JoiningTexts texts = pipeline.joiningTexts(limits);
            var stop = new AtomicReference<Runnable>(() -> {});
            var outcome = CompletableFuture.supplyAsync(() -> pipeline.serve(texts, stop::set));
            await().atMost(SOON).until(texts::isReady);
            return new Service(pipeline, texts, outcome, stop);
        }

        static Service start(int stages, JoiningTexts.Limits limits) {
            return start(JoiningTextsTest.pipeline(stages), limits);
        }

        Heard submit(TextRequest request) {
            return trySubmit(request).orElseThrow();
        }

        Optional<Heard> trySubmit(TextRequest request) {
            var heard = new Heard(new CopyOnWriteArrayList<>(), new CompletableFuture<>());
            return texts.submit(List.of(request), _ -> heard).map(_ -> heard);
        }

        @Override
        public void close() {
            texts.close();
            stop.get().run();
            assertThat(outcome.orTimeout(60, TimeUnit.SECONDS).join())
                    .isInstanceOf(RunOutcome.Completed.class);
        }
    }

    /** Where no layer keeps keys, each text has its state, and more room nobody asks for. */
    @ParameterizedTest(name = "{0}: {1}")
    @CsvSource({"retnet, 3", "retnet-mixed, 1"})
    void textsOfALayerWithAStateWaitForNoKeys(String family, int growing) {
        ModelShape shape = new GoldenFamily(family).shape();
        var limits = new JoiningTexts.Limits(3, 3, 16, 16);
        var texts = new JoiningTexts(shape, 1, 8, limits);
        var longest =
                new TextRequest(new int[] {1, 2}, 14, Sampling.greedy(), 0, OptionalInt.empty());
        texts.submit(
                List.of(longest, longest, longest),
                _ -> new Heard(new CopyOnWriteArrayList<>(), new CompletableFuture<>()));

        texts.begin(0, 0);
        texts.feed(0, 0);

        assertThat(texts.growing()).isEqualTo(growing);
        assertThat(texts.keptTokens()).isEqualTo(growing == 1 ? 16 : 0);
    }

    private record Heard(List<Integer> tokens, CompletableFuture<End> end) implements TextProgress {
        @Override
        public void onToken(int token) {
            tokens.add(token);
        }

        @Override
        public void onEnd(End how) {
            end.complete(how);
        }
    }

    private static PipelineInference pipeline(int stages) {
        return new PipelineInference(
                MODEL.shape(),
                StagePartition.byFlops(MODEL.shape(), stages),
                Precision.FLOAT32,
                TRUTH.source(),
                _ -> Devices.open(DeviceSettings.DEFAULTS.withThreads(1)));
    }

    private static TextRequest request(Random random, int vocabulary, int context, int most) {
        int[] prompt = random.ints(1 + random.nextInt(context), 0, vocabulary).toArray();
        return new TextRequest(
                prompt,
                1 + random.nextInt(most),
                new Sampling(random.nextInt(3) * 0.5, random.nextInt(9), 0.9, random.nextLong()),
                random.nextInt(2),
                OptionalInt.of(7));
    }

    /** By itself, in a pipeline of its own. */
    private static List<Integer> alone(PipelineInference pipeline, TextRequest request) {
        List<int[]> prompts = new ArrayList<>();
        for (int number = 0; number <= request.number(); number++) {
            prompts.add(number == request.number() ? request.prompt() : new int[] {1});
        }
        var plain =
                new InferenceRequest(
                        prompts, request.count(), request.sampling(), request.endOfText(), true);
        int[] tokens =
                pipeline.run(plain, (_, _) -> true, _ -> {}).texts().get(request.number()).tokens();
        return Arrays.stream(tokens).boxed().toList();
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3})
    void aTextHasTheTokensThatItHasAloneWhateverComesAndGoesBesideIt(int stages) throws Exception {
        try (Service service = Service.start(stages, new JoiningTexts.Limits(5, 100, 64))) {
            requireAsAlone(service, requests(12, 37, 16, 48), pipeline(1));
        }
    }

    /** Room for two of the longest, which short ones share, in whatever order they come and go. */
    @Test
    void aTextHasTheTokensThatItHasAloneWhereTextsWaitForRoom() throws Exception {
        ModelConfig model = ModelConfig.gpt2(37, 256, 24, 3, 3, false);
        var pipeline =
                new PipelineInference(
                        model.shape(),
                        StagePartition.byFlops(model.shape(), 2),
                        Precision.FLOAT32,
                        PlainGpt.random(model, 5).source(),
                        _ -> Devices.open(DeviceSettings.DEFAULTS.withThreads(1)));
        try (Service service = Service.start(pipeline, new JoiningTexts.Limits(7, 100, 300, 512))) {
            assertThat(service.texts().keptTokens()).isEqualTo(512);
            requireAsAlone(service, requests(24, 37, 150, 60), pipeline);
            assertThat(service.texts().taken()).isZero();
        }
    }

    /** Of positions that turn heads, with a window that slides. */
    @ParameterizedTest
    @ValueSource(strings = {"llama", "mistral"})
    void theSameOfHeadsThatTurn(String family) throws Exception {
        var golden = new GoldenFamily(family);
        int context = golden.shape().context();
        var pipeline =
                new PipelineInference(
                        golden.shape(),
                        StagePartition.byFlops(golden.shape(), 2),
                        Precision.FLOAT32,
                        golden.initial(),
                        _ -> Devices.open(DeviceSettings.DEFAULTS.withThreads(1)));
        try (Service service =
                Service.start(pipeline, new JoiningTexts.Limits(3, 100, 4 * context))) {
            int vocabulary = golden.shape().vocabulary();
            requireAsAlone(service, requests(10, vocabulary, context, 3 * context), pipeline);
        }
    }

    /** Prompts of several slices, of which not all fit a unit. */
    @Test
    void theSameOfLongPrompts() throws Exception {
        ModelConfig model = ModelConfig.gpt2(37, 400, 24, 2, 3, false);
        var pipeline =
                new PipelineInference(
                        model.shape(),
                        StagePartition.byFlops(model.shape(), 2),
                        Precision.FLOAT32,
                        PlainGpt.random(model, 5).source(),
                        _ -> Devices.open(DeviceSettings.DEFAULTS.withThreads(1)));
        try (Service service = Service.start(pipeline, new JoiningTexts.Limits(8, 100, 500))) {
            requireAsAlone(service, requests(10, 37, 400, 100), pipeline);
        }
    }

    private static List<TextRequest> requests(int count, int vocabulary, int context, int most) {
        var random = new Random(3);
        return random.ints(count)
                .mapToObj(_ -> request(random, vocabulary, context, most))
                .toList();
    }

    private static void requireAsAlone(
            Service service, List<TextRequest> requests, PipelineInference single)
            throws Exception {
        try (ExecutorService clients = Executors.newFixedThreadPool(7)) {
            List<Future<Heard>> heard = new ArrayList<>();
            for (TextRequest request : requests) {
                heard.add(
                        clients.submit(
                                () -> {
                                    Heard text = service.submit(request);
                                    text.end().join();
                                    return text;
                                }));
            }
            for (int i = 0; i < requests.size(); i++) {
                List<Integer> tokens = heard.get(i).get().tokens();
                assertThat(tokens).as("text %d", i).isEqualTo(alone(single, requests.get(i)));
            }
        }
    }

    @Test
    void aFullQueueTakesNothing() {
        try (Service service = Service.start(1, new JoiningTexts.Limits(1, 1, 10_000))) {
            Heard growing = service.submit(longText());
            Heard waiting = service.submit(longText());

            assertThat(service.trySubmit(longText())).isEmpty();
            assertThat(growing.end()).isNotDone();
            assertThat(waiting.end()).isNotDone();
        }
    }

    private static TextRequest longText() {
        return new TextRequest(
                new int[] {1, 2}, 9_000, new Sampling(1, 0, 1, 1), 0, OptionalInt.empty());
    }

    @Test
    void aTextThatIsCancelledMakesRoomForTheNext() {
        try (Service service = Service.start(2, new JoiningTexts.Limits(1, 5, 10_000))) {
            var heard = new Heard(new CopyOnWriteArrayList<>(), new CompletableFuture<>());
            Runnable cancel =
                    service.texts()
                            .submit(List.of(longText()), _ -> heard)
                            .orElseThrow()
                            .getFirst();
            var next =
                    new TextRequest(new int[] {5}, 20, Sampling.greedy(), 0, OptionalInt.empty());
            Heard following = service.submit(next);
            await().atMost(SOON).until(() -> heard.tokens().size() > 3);

            cancel.run();

            assertThat(heard.end().join()).isEqualTo(End.STOPPED);
            assertThat(following.end().orTimeout(60, TimeUnit.SECONDS).join())
                    .isEqualTo(End.LENGTH);
            assertThat(following.tokens()).isEqualTo(alone(pipeline(1), next));
        }
    }

    @Test
    void allTextsEndWithThePipelineAndNoneJoinsAfterwards() {
        Service service = Service.start(2, new JoiningTexts.Limits(1, 5, 10_000));
        Heard growing = service.submit(longText());
        Heard waiting = service.submit(longText());

        service.close();

        assertThat(growing.end().join()).isEqualTo(End.STOPPED);
        assertThat(waiting.end().join()).isEqualTo(End.STOPPED);
        assertThatThrownBy(() -> service.submit(longText()))
                .isInstanceOf(IllegalStateException.class);
    }

    @Test
    void aTextThatIsTooLongIsRefused() {
        JoiningTexts texts = pipeline(1).joiningTexts(new JoiningTexts.Limits(1, 1, 20));
        var request = new TextRequest(new int[] {1}, 20, Sampling.greedy(), 0, OptionalInt.empty());

        assertThatThrownBy(() -> texts.submit(List.of(request), _ -> null))
                .hasMessageContaining("a text of at most 20", "got 1 and 21");
    }

    /** A pass begins again after a failure: stages that were built anew know nothing of texts. */
    @Test
    void aPassThatBeginsAgainEndsTheTextsInFlight() throws InterruptedException {
        JoiningTexts texts = pipeline(2).joiningTexts(new JoiningTexts.Limits(2, 5, 20));
        var ended = new CountDownLatch(1);
        texts.begin(0, 0);
        texts.submit(
                List.of(
                        new TextRequest(
                                new int[] {1}, 5, Sampling.greedy(), 0, OptionalInt.empty())),
                _ ->
                        new TextProgress() {
                            @Override
                            public void onToken(int token) {}

                            @Override
                            public void onEnd(End end) {
                                ended.countDown();
                            }
                        });
        assertThat(texts.feed(0, 0)).isNotNull();

        texts.begin(0, 0);

        ended.await();
        assertThat(texts.growing()).isZero();
    }
}
