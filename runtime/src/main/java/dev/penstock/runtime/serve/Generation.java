package dev.penstock.runtime.serve;

import dev.penstock.runtime.inference.Continuation;
import dev.penstock.runtime.inference.JoiningTexts;
import dev.penstock.runtime.inference.LogProbabilities;
import dev.penstock.runtime.inference.TextProgress;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The texts of a request while they grow, read by one thread. Closing it ends those that have not
 * ended.
 */
final class Generation implements AutoCloseable {
    /** Why a choice ended, in the words of the protocol. */
    enum Finish {
        STOP,
        LENGTH;

        String word() {
            return this == STOP ? "stop" : "length";
        }
    }

    /**
     * More of a choice.
     *
     * @param text may be empty
     * @param finish null while it goes on
     * @param tokens whose text this is, if their log-probabilities are wanted
     */
    record Piece(int choice, String text, @Nullable Finish finish, List<ChosenToken> tokens) {}

    private record Event(
            int choice,
            int token,
            @Nullable LogProbabilities chances,
            Continuation.@Nullable End end) {}

    private final BlockingQueue<Event> events = new LinkedBlockingQueue<>();
    private final List<GrowingText> choices = new ArrayList<>();

    /** Tokens of each choice of which some text was not handed on yet. */
    private final List<Deque<ChosenToken>> held = new ArrayList<>();

    private final JoiningTexts texts;
    private final List<Runnable> cancels;
    private int growing;
    private int tokens;

    /**
     * Lets the texts join.
     *
     * @throws ApiException if there is no room, or the server ends
     */
    Generation(JoiningTexts texts, TextOrder order, Tokenizer tokenizer) {
        order.texts()
                .forEach(
                        _ ->
                                choices.add(
                                        new GrowingText(
                                                tokenizer, order.stops(), order.closing())));
        order.texts().forEach(_ -> held.add(new ArrayDeque<>()));
        growing = choices.size();
        this.texts = texts;
        try {
            cancels =
                    texts.submit(order.texts(), this::progress)
                            .orElseThrow(
                                    () ->
                                            new ApiException(
                                                    429,
                                                    "rate_limit_exceeded",
                                                    null,
                                                    "%d texts grow and %d wait; try again later"
                                                            .formatted(
                                                                    texts.growing(),
                                                                    texts.waiting())));
        } catch (IllegalStateException e) {
            throw stopped();
        }
    }

    private ApiException stopped() {
        return texts.interruption().map(ApiException::interrupted).orElseGet(ApiException::ending);
    }

    private TextProgress progress(int choice) {
        return new TextProgress() {
            @Override
            public void onToken(int token) {
                events.add(new Event(choice, token, null, null));
            }

            @Override
            public void onToken(LogProbabilities chances) {
                events.add(new Event(choice, chances.token(), chances, null));
            }

            @Override
            public void onEnd(Continuation.End end) {
                events.add(new Event(choice, -1, null, end));
            }
        };
    }

    /** Returns whether all choices have ended. */
    boolean isOver() {
        return growing == 0;
    }

    /** Returns how many tokens were chosen and used. */
    int tokens() {
        return tokens;
    }

    /**
     * Waits for more of a choice; null if nothing comes in time.
     *
     * @throws ApiException if the server ends
     */
    @Nullable Piece next(Duration patience) throws InterruptedException {
        Event event = events.poll(patience.toNanos(), TimeUnit.NANOSECONDS);
        if (event == null) {
            return null;
        }
        GrowingText text = choices.get(event.choice());
        if (text.isStopped()) {
            return new Piece(event.choice(), "", null, List.of()); // a token that came too late
        }
        if (event.end() == null) {
            tokens++;
            if (event.chances() != null) {
                held.get(event.choice()).add(new ChosenToken(text.come(), event.chances()));
            }
            return piece(event.choice(), text, text.next(event.token()), null);
        }
        return switch (event.end()) {
            case STOPPED -> throw stopped();
            case LENGTH -> piece(event.choice(), text, text.end(), Finish.LENGTH);
            case END_OF_TEXT -> piece(event.choice(), text, text.endOfText(), Finish.STOP);
        };
    }

    private Piece piece(int choice, GrowingText text, String more, @Nullable Finish finish) {
        Finish how = text.isStopped() ? Finish.STOP : finish;
        if (how != null) {
            growing--;
            cancels.get(choice).run();
        }
        return new Piece(choice, more, how, handedOn(choice, text, how == Finish.LENGTH));
    }

    /** Of tokens that stand for a part of a character, all go with it. */
    private List<ChosenToken> handedOn(int choice, GrowingText text, boolean all) {
        Deque<ChosenToken> waiting = held.get(choice);
        List<ChosenToken> tokensOfText = new ArrayList<>();
        while (!waiting.isEmpty() && (all || waiting.element().offset() < text.shown())) {
            tokensOfText.add(waiting.remove());
        }
        return tokensOfText;
    }

    @Override
    public void close() {
        cancels.forEach(Runnable::run);
    }
}
