package dev.penstock;

import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.runtime.chat.TemplateException;
import dev.penstock.runtime.inference.JoiningTexts;
import dev.penstock.runtime.inference.PipelineInference;
import dev.penstock.runtime.inference.TrainedModel;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.serve.InferenceServer;
import dev.penstock.runtime.serve.ServeAddress;
import dev.penstock.runtime.serve.ServedModel;
import dev.penstock.runtime.serve.UsualTemplate;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;

/**
 * A model that is served by HTTP in OpenAI's protocol ({@code /v1/completions}, {@code
 * /v1/chat/completions}, {@code /v1/models}), with a page to talk with it at {@code /}.
 *
 * {@snippet file="dev/penstock/examples/ServeExample.java" region="example"}
 */
public final class ModelServer implements AutoCloseable {
    /** As many as {@code penstock serve} has. */
    private static final int TOGETHER = 8;

    private static final int WAITING = 64;
    private static final int MOST_TOKENS = 2048;

    private final InferenceServer server;
    private final JoiningTexts texts;
    private final CompletableFuture<RunOutcome> outcome = new CompletableFuture<>();
    private Runnable stop = () -> {};
    private boolean closed;

    private ModelServer(InferenceServer server, JoiningTexts texts) {
        this.server = server;
        this.texts = texts;
    }

    static ModelServer start(
            ServeAddress address,
            Path place,
            TrainedModel model,
            Optional<String> tokenizerName,
            Tokenizer tokenizer,
            PipelineInference pipeline) {
        ModelShape shape = model.shape();
        int most = Math.max(2, Math.min(shape.context(), MOST_TOKENS));
        JoiningTexts texts =
                pipeline.joiningTexts(new JoiningTexts.Limits(TOGETHER, WAITING, most));
        try {
            var served =
                    new ServedModel(
                            String.valueOf(place.toAbsolutePath().normalize().getFileName()),
                            tokenizer,
                            shape.vocabulary(),
                            shape.context(),
                            most,
                            new UsualTemplate(model, tokenizerName, tokenizer)
                                    .orAsked(Optional.empty()));
            var started = new ModelServer(InferenceServer.start(address, served, texts), texts);
            Thread.ofPlatform()
                    .name("penstock-serving")
                    .daemon()
                    .start(() -> started.serve(pipeline));
            started.awaitReady();
            return started;
        } catch (IOException e) {
            throw new PenstockException(
                    List.of(
                            "expected a port of %s that is free, got %d (%s); give another, or 0 for any"
                                    .formatted(
                                            address.host().getHostAddress(),
                                            address.port(),
                                            e.getMessage())),
                    e);
        } catch (TemplateException e) {
            throw new PenstockException(
                    List.of("expected a chat template that can be read, got " + e.getMessage()), e);
        }
    }

    /** A failure while the weights are read is no server that serves. */
    private void awaitReady() {
        try {
            if (!texts.awaitReady()) {
                server.close();
                await();
                throw new PenstockException(
                        List.of("the model's pipeline ended before it served"), null);
            }
        } catch (InterruptedException e) {
            close();
            Thread.currentThread().interrupt();
            throw new PenstockException(List.of("interrupted before the model was loaded"), e);
        }
    }

    private void serve(PipelineInference pipeline) {
        try {
            outcome.complete(pipeline.serve(texts, this::onStop));
        } catch (RuntimeException e) {
            outcome.completeExceptionally(e);
        }
    }

    /** Takes what ends the pipeline, which is done at once if this was closed before. */
    private synchronized void onStop(Runnable action) {
        stop = action;
        if (closed) {
            action.run();
        }
    }

    private synchronized void stop() {
        if (!closed) {
            closed = true;
            stop.run();
        }
    }

    /** Returns where clients and browsers find it. */
    public URI address() {
        return URI.create(server.url());
    }

    /**
     * Waits until it is closed by another thread.
     *
     * @throws PenstockException if the pipeline behind it fails
     */
    public void await() throws InterruptedException {
        try {
            if (outcome.get() instanceof RunOutcome.Failed(_, String reason)) {
                throw new PenstockException(List.of(reason), null);
            }
        } catch (ExecutionException e) {
            throw Failures.elsewhere(e.getCause() == null ? e : e.getCause());
        }
    }

    /** Ends the texts under way and stops; returns when nothing of it is left. */
    @Override
    public void close() {
        texts.close();
        stop();
        server.close();
        try {
            var _ = outcome.handle((_, _) -> true).get();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (ExecutionException e) {
            throw new IllegalStateException("a handled end has no failure", e);
        }
    }
}
