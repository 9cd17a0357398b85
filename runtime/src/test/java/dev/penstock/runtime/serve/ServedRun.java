package dev.penstock.runtime.serve;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.chat.ChatTemplate;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.SavedRun;
import dev.penstock.runtime.inference.JoiningTexts;
import dev.penstock.runtime.inference.PipelineInference;
import dev.penstock.runtime.inference.TrainedModel;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.shape.HeldWeights;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;

/** A tiny model of bytes with random weights, served in this process. */
final class ServedRun implements AutoCloseable {
    static final String NAME = "tiny";
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration SOON = Duration.ofSeconds(60);

    final Path run;
    final JoiningTexts texts;
    final InferenceServer server;
    private final TrainedModel model;
    private final CompletableFuture<RunOutcome> outcome;
    private final AtomicReference<Runnable> stop = new AtomicReference<>(() -> {});
    private final HttpClient client = HttpClient.newHttpClient();

    private ServedRun(
            Path run,
            ModelConfig config,
            int stages,
            JoiningTexts.Limits limits,
            HeldWeights held,
            Optional<String> key)
            throws IOException {
        this.run = run;
        SavedRun.write(run, 1, config);
        model = TrainedModel.open(run, _ -> {});
        var pipeline =
                new PipelineInference(
                        model.shape(),
                        StagePartition.byFlops(model.shape(), stages),
                        held,
                        model.tensors()::fill,
                        _ -> Devices.open(DeviceSettings.DEFAULTS.withThreads(1)));
        texts = pipeline.joiningTexts(limits);
        server =
                InferenceServer.start(
                        ServeAddress.of(InetAddress.getLoopbackAddress(), 0, key),
                        new ServedModel(
                                NAME,
                                Tokenizer.named("bytes"),
                                model.shape().vocabulary(),
                                model.shape().context(),
                                limits.tokens(),
                                ChatTemplate.of("plain", null)),
                        texts);
        outcome = CompletableFuture.supplyAsync(() -> pipeline.serve(texts, stop::set));
        await().atMost(SOON).until(texts::isReady);
    }

    static ServedRun start(Path run, int stages, JoiningTexts.Limits limits) throws IOException {
        return start(run, stages, limits, HeldWeights.FLOAT32);
    }

    static ServedRun start(Path run, int stages, JoiningTexts.Limits limits, HeldWeights held)
            throws IOException {
        return new ServedRun(run, SavedRun.MODEL, stages, limits, held, Optional.empty());
    }

    /** Of a model whose context has room for a conversation. */
    static ServedRun ofLongContext(Path run, JoiningTexts.Limits limits) throws IOException {
        ModelConfig model = ModelConfig.gpt2(256, 512, 8, 1, 2, true);
        return new ServedRun(run, model, 1, limits, HeldWeights.FLOAT32, Optional.empty());
    }

    static ServedRun withKey(Path run, String key) throws IOException {
        return new ServedRun(
                run,
                SavedRun.MODEL,
                1,
                new JoiningTexts.Limits(2, 2, 100),
                HeldWeights.FLOAT32,
                Optional.of(key));
    }

    HttpRequest.Builder request(String path) {
        return HttpRequest.newBuilder(URI.create(server.url() + path)).timeout(SOON);
    }

    HttpRequest.Builder posting(String path, String body) {
        return request(path)
                .header("Content-Type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString(body));
    }

    HttpResponse<String> send(HttpRequest.Builder request) {
        try {
            return client.send(request.build(), HttpResponse.BodyHandlers.ofString());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    HttpResponse<String> get(String path) {
        return send(request(path));
    }

    HttpResponse<String> post(String path, String body) {
        return send(posting(path, body));
    }

    /** What generate writes after this prompt. */
    String generated(String prompt, String... options) {
        String[] arguments = new String[options.length + 4];
        arguments[0] = "generate";
        arguments[1] = run.toString();
        arguments[2] = "--prompt=" + prompt;
        arguments[3] = "--json";
        System.arraycopy(options, 0, arguments, 4, options.length);
        Cli cli = Cli.run(arguments);
        assertThat(cli.err()).isEmpty();
        return json(cli.out()).get("text").asText();
    }

    static JsonNode json(String text) {
        try {
            return JSON.readTree(text);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Override
    public void close() {
        texts.close();
        stop.get().run();
        assertThat(outcome.orTimeout(60, TimeUnit.SECONDS).join())
                .isInstanceOf(RunOutcome.Completed.class);
        server.close();
        model.close();
        client.close();
    }
}
