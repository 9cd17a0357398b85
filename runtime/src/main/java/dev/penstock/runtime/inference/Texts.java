package dev.penstock.runtime.inference;

import dev.penstock.runtime.inference.Continuation.End;
import dev.penstock.runtime.model.Feed;
import dev.penstock.runtime.model.TextFeed;
import dev.penstock.runtime.model.TokenSampler;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The texts of a request as they grow: where the last stage puts a token and the first stage waits
 * for it. Everything shared is guarded by this object's monitor; samplers are the last stage's.
 */
final class Texts implements TextFeed {
    private static final long PATIENCE_NANOS = 60_000_000_000L;
    private static final long LOOK_MILLIS = 1_000;

    private static final class Text {
        final List<Feed> feeds;
        final int prompt;
        final int[] tokens;
        final TokenSampler sampler;
        int length;
        @Nullable End end;

        Text(int[] prompt, List<Feed> feeds, InferenceRequest request, int number) {
            this.feeds = feeds;
            this.prompt = prompt.length;
            tokens = Arrays.copyOf(prompt, prompt.length + request.count());
            length = prompt.length;
            sampler = new TokenSampler(request.sampling(), number);
        }
    }

    private final InferenceRequest request;
    private final TokenListener listener;
    private final List<Text> texts = new ArrayList<>();
    private final List<Integer> sliceRows;
    private long moves;

    /**
     * @param context of the model
     * @param sliceTokens most tokens of a slice of a prompt
     */
    Texts(InferenceRequest request, int context, int sliceTokens, TokenListener listener) {
        this.request = request;
        this.listener = listener;
        for (int[] prompt : request.prompts()) {
            List<Feed> feeds =
                    FeedPlan.of(
                            prompt.length, request.count(), context, sliceTokens, request.caches());
            texts.add(new Text(prompt, feeds, request, texts.size()));
        }
        int slices = texts.stream().mapToInt(text -> text.feeds.size()).max().orElseThrow();
        List<Integer> rows = new ArrayList<>();
        for (int slice = 0; slice < slices; slice++) {
            int of = slice;
            rows.add(
                    texts.stream()
                            .filter(text -> of < text.feeds.size())
                            .mapToInt(text -> text.feeds.get(of).count())
                            .max()
                            .orElseThrow());
        }
        sliceRows = List.copyOf(rows);
    }

    @Override
    public int texts() {
        return texts.size();
    }

    @Override
    public List<Integer> sliceRows() {
        return sliceRows;
    }

    @Override
    public int cachedTokens() {
        return texts.stream()
                .flatMap(text -> text.feeds.stream())
                .mapToInt(feed -> feed.position() + feed.count())
                .max()
                .orElseThrow();
    }

    @Override
    public synchronized @Nullable Feed feed(int number, int slice) {
        moves++;
        Text text = texts.get(number);
        return text.end != null || slice >= text.feeds.size() ? null : text.feeds.get(slice);
    }

    @Override
    public synchronized int @Nullable [] await(int number, Feed feed) {
        Text text = texts.get(number);
        long seen = moves;
        long since = System.nanoTime();
        while (text.end == null && text.length < feed.end()) {
            try {
                wait(LOOK_MILLIS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new IllegalStateException("interrupted while a token was to be chosen", e);
            }
            if (moves != seen) {
                seen = moves;
                since = System.nanoTime();
            } else if (System.nanoTime() - since > PATIENCE_NANOS) {
                throw new IllegalStateException(
                        "token %d of text %d was not chosen: no stage has moved for %d s"
                                .formatted(text.length, number, PATIENCE_NANOS / 1_000_000_000));
            }
        }
        return text.end == null ? Arrays.copyOfRange(text.tokens, feed.from(), feed.end()) : null;
    }

    /** The first stage goes on while the listener is told. */
    @Override
    public void choose(int number, float[] logits) {
        Text text = texts.get(number);
        if (hasEnded(text)) {
            return;
        }
        int token = text.sampler.choose(logits);
        if (request.endOfText().stream().anyMatch(end -> end == token)) {
            end(text, End.END_OF_TEXT);
        } else {
            append(text, token);
            if (!listener.onToken(number, token)) {
                end(text, End.STOPPED);
            }
        }
        if (hasEnded(text)) {
            listener.onEnd(number);
        }
    }

    private synchronized void append(Text text, int token) {
        moves++;
        text.tokens[text.length++] = token;
        if (text.length == text.tokens.length) {
            end(text, End.LENGTH);
        }
        notifyAll();
    }

    private synchronized void end(Text text, End end) {
        if (text.end == null) {
            text.end = end;
        }
        notifyAll();
    }

    private synchronized boolean hasEnded(Text text) {
        return text.end != null;
    }

    @Override
    public void stop() {
        texts.forEach(text -> end(text, End.STOPPED));
    }

    /** How the texts went on so far. */
    synchronized List<Continuation> continuations() {
        return texts.stream()
                .map(
                        text ->
                                new Continuation(
                                        Arrays.copyOfRange(text.tokens, text.prompt, text.length),
                                        Objects.requireNonNullElse(text.end, End.STOPPED)))
                .toList();
    }
}
