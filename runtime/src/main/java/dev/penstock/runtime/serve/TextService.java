package dev.penstock.runtime.serve;

import com.sun.net.httpserver.HttpExchange;
import dev.penstock.runtime.inference.JoiningTexts;
import dev.penstock.runtime.serve.AnswerFormat.Choice;
import dev.penstock.runtime.serve.Generation.Finish;
import dev.penstock.runtime.serve.Generation.Piece;
import java.io.IOException;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** Answers requests for texts. Safe to share. */
final class TextService {
    private static final int LARGE_BODY_BYTES = 256 << 10;

    /** For a large body to be read, and for a client to read what is written to it. */
    private static final Duration MOST_WAIT = Duration.ofSeconds(30);

    private final ServedModel model;
    private final JoiningTexts texts;
    private final ServeMetrics metrics;
    private final RequestReader reader;
    private final InstantSource clock;
    private final WriteLimit limit = new WriteLimit(MOST_WAIT);

    /** Bodies of megabytes are read one by one: in pieces they take a hundred times their room. */
    private final Semaphore largeBodies = new Semaphore(1);

    TextService(ServedModel model, JoiningTexts texts, ServeMetrics metrics, InstantSource clock) {
        this.model = model;
        this.texts = texts;
        this.metrics = metrics;
        this.clock = clock;
        reader = new RequestReader(model);
    }

    /** The answer to who asks for another model. */
    ApiException noModel(String name) {
        return reader.noModel(name);
    }

    /**
     * Answers a request; the texts end if its client leaves.
     *
     * @throws ApiException before anything was sent
     * @throws IOException if the client has left
     */
    void answer(HttpExchange exchange, AnswerFormat.Kind kind, byte[] body)
            throws IOException, InterruptedException {
        TextOrder order = order(kind, body);
        var format =
                new AnswerFormat(
                        kind,
                        kind.prefix() + UUID.randomUUID().toString().replace("-", ""),
                        model.name(),
                        clock.instant().getEpochSecond(),
                        new LogProbabilityFormat(model.tokenizer()));
        var answer = new ClientAnswer(exchange, order.stream(), limit);
        long since = System.nanoTime();
        try (var generation = new Generation(texts, order, model.tokenizer())) {
            metrics.began(order.promptTokens());
            try {
                if (order.stream()) {
                    stream(answer, format, order, generation, since);
                } else {
                    whole(answer, format, order, generation, since);
                }
                answer.end();
                metrics.endedAfter(System.nanoTime() - since);
            } catch (ApiException e) {
                if (!answer.hasBegun()) {
                    throw e;
                }
                if (order.stream()) {
                    answer.event(AnswerFormat.error(e));
                } else {
                    answer.object(
                            AnswerFormat.error(e)); // its status was sent with the first space
                }
                answer.end();
            } finally {
                metrics.chose(generation.tokens());
            }
        }
    }

    private TextOrder order(AnswerFormat.Kind kind, byte[] body) throws InterruptedException {
        if (body.length <= LARGE_BODY_BYTES) {
            return read(kind, body);
        }
        if (!largeBodies.tryAcquire(MOST_WAIT.toSeconds(), TimeUnit.SECONDS)) {
            throw new ApiException(
                    429,
                    "rate_limit_exceeded",
                    null,
                    "other requests of more than %d KiB are being read; try again later"
                            .formatted(LARGE_BODY_BYTES >> 10));
        }
        try {
            return read(kind, body);
        } finally {
            largeBodies.release();
        }
    }

    private TextOrder read(AnswerFormat.Kind kind, byte[] body) {
        RequestFields fields = RequestFields.of(body);
        return kind == AnswerFormat.Kind.CHAT ? reader.chat(fields) : reader.completion(fields);
    }

    private void stream(
            ClientAnswer answer,
            AnswerFormat format,
            TextOrder order,
            Generation generation,
            long since)
            throws IOException, InterruptedException {
        boolean[] opened = new boolean[order.texts().size()];
        while (!generation.isOver()) {
            Piece piece = next(answer, generation, since);
            if (piece == null || (piece.text().isEmpty() && piece.finish() == null)) {
                continue;
            }
            if (!opened[piece.choice()]) {
                opened[piece.choice()] = true;
                var opening = format.opening(piece.choice());
                if (opening != null) {
                    answer.event(opening);
                }
            }
            if (!piece.text().isEmpty()) {
                answer.event(
                        format.part(
                                piece.choice(),
                                piece.text(),
                                null,
                                order.logProbabilities() ? piece.tokens() : null));
            }
            if (piece.finish() != null) {
                boolean rest = order.logProbabilities() && piece.text().isEmpty();
                answer.event(
                        format.part(
                                piece.choice(), "", piece.finish(), rest ? piece.tokens() : null));
            }
        }
        if (order.usage()) {
            answer.event(format.counts(order.promptTokens(), generation.tokens()));
        }
        answer.done();
    }

    private void whole(
            ClientAnswer answer,
            AnswerFormat format,
            TextOrder order,
            Generation generation,
            long since)
            throws IOException, InterruptedException {
        int count = order.texts().size();
        List<StringBuilder> grown = new ArrayList<>();
        order.texts().forEach(_ -> grown.add(new StringBuilder()));
        List<List<ChosenToken>> tokens = new ArrayList<>();
        order.texts().forEach(_ -> tokens.add(new ArrayList<>()));
        Finish[] finishes = new Finish[count];
        Arrays.fill(finishes, Finish.LENGTH);
        while (!generation.isOver()) {
            Piece piece = next(answer, generation, since);
            if (piece != null) {
                grown.get(piece.choice()).append(piece.text());
                tokens.get(piece.choice()).addAll(piece.tokens());
                finishes[piece.choice()] =
                        piece.finish() == null ? finishes[piece.choice()] : piece.finish();
            }
        }
        List<Choice> choices = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            choices.add(
                    new Choice(
                            grown.get(i).toString(),
                            finishes[i],
                            order.logProbabilities() ? tokens.get(i) : null));
        }
        answer.object(format.whole(choices, order.promptTokens(), generation.tokens()));
    }

    private @Nullable Piece next(ClientAnswer answer, Generation generation, long since)
            throws IOException, InterruptedException {
        boolean first = generation.tokens() == 0;
        Piece piece = generation.next(answer.patience());
        if (first && generation.tokens() > 0) {
            metrics.firstTokenAfter(System.nanoTime() - since);
        }
        answer.keepAlive();
        return piece;
    }
}
