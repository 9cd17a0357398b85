package dev.penstock.runtime.inference;

import dev.penstock.runtime.inference.Continuation.End;
import dev.penstock.runtime.model.generation.TextFeed;
import dev.penstock.runtime.model.generation.TokenSampler;
import dev.penstock.runtime.model.shape.Feed;
import dev.penstock.runtime.model.shape.FeedRows;
import dev.penstock.runtime.model.shape.ModelShape;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.function.ToIntFunction;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * The texts of a request as they grow: the last stage adds a token, for which the first stage
 * waits. Everything shared is guarded by this object's monitor; samplers belong to the last stage.
 */
final class Texts implements TextFeed {
    private static final long PATIENCE_NANOS = 60_000_000_000L;
    private static final long LOOK_MILLIS = 1_000;

    /**
     * Beyond this number, more rows at a time do not make the products faster, and prompts take
     * memory.
     */
    private static final int MOST_TOGETHER = 16;

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
    private final int cachedTokens;
    private final List<List<Integer>> microBatches;
    private final List<Integer> sliceRows;
    private long moves;

    /**
     * Deals texts to as many micro-batches as there are stages, so that each stage has one to work
     * on.
     *
     * @param shape of the model
     * @param sliceTokens maximum tokens of a slice of a prompt
     */
    Texts(
            InferenceRequest request,
            int stages,
            ModelShape shape,
            int sliceTokens,
            TokenListener listener) {
        this.request = request;
        this.listener = listener;
        for (int[] prompt : request.prompts()) {
            List<Feed> feeds =
                    FeedPlan.of(
                            shape, prompt.length, request.count(), sliceTokens, request.caches());
            texts.add(new Text(prompt, feeds, request, texts.size()));
        }
        cachedTokens = most(feed -> feed.position() + feed.count());
        microBatches = dealt(texts.size(), stages);
        int slices = texts.stream().mapToInt(text -> text.feeds.size()).max().orElseThrow();
        sliceRows = IntStream.range(0, slices).mapToObj(this::mostRows).toList();
    }

    private static List<List<Integer>> dealt(int texts, int stages) {
        int wanted = Math.max(stages, Math.ceilDiv(texts, MOST_TOGETHER));
        int count = Math.min(texts, wanted);
        return IntStream.range(0, count)
                .mapToObj(
                        i ->
                                IntStream.range(i * texts / count, (i + 1) * texts / count)
                                        .boxed()
                                        .toList())
                .toList();
    }

    private int mostRows(int slice) {
        return IntStream.range(0, microBatches.size())
                .mapToObj(microBatch -> planned(microBatch, slice))
                .filter(feeds -> !feeds.runs().isEmpty())
                .mapToInt(FeedRows::count)
                .max()
                .orElseThrow();
    }

    /** Returns the feeds that follow from the lengths alone. */
    private FeedRows planned(int microBatch, int slice) {
        List<Integer> feeding =
                microBatches.get(microBatch).stream()
                        .filter(text -> slice < texts.get(text).feeds.size())
                        .toList();
        return FeedRows.of(
                feeding,
                feeding.stream().map(text -> texts.get(text).feeds.get(slice)).toList(),
                text -> text * cachedTokens);
    }

    /** Returns the number of micro-batches. */
    int microBatches() {
        return microBatches.size();
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
        return cachedTokens;
    }

    @Override
    public int places() {
        return most(feed -> feed.place() + feed.count());
    }

    private int most(ToIntFunction<Feed> number) {
        return texts.stream()
                .flatMap(text -> text.feeds.stream())
                .mapToInt(number)
                .max()
                .orElseThrow();
    }

    @Override
    public synchronized @Nullable FeedRows feed(int microBatch, int slice) {
        moves++;
        FeedRows feeds = planned(microBatch, slice);
        return haveEnded(feeds) ? null : feeds;
    }

    /** Returns true also if there are no feeds. */
    private boolean haveEnded(FeedRows feeds) {
        return feeds.runs().stream().allMatch(run -> texts.get(run.text()).end != null);
    }

    @Override
    public synchronized int @Nullable [] await(FeedRows feeds) {
        int[] tokens = new int[feeds.count()];
        for (FeedRows.Run run : feeds.runs()) {
            Text text = texts.get(run.text());
            awaitTokens(run.text(), run.feed().end());
            System.arraycopy(
                    text.tokens, run.feed().from(), tokens, run.firstRow(), run.feed().count());
        }
        return haveEnded(feeds) ? null : tokens;
    }

    /** Waits until the text has that many tokens, or has ended. */
    private synchronized void awaitTokens(int number, int length) {
        Text text = texts.get(number);
        long seen = moves;
        long since = System.nanoTime();
        while (text.end == null && text.length < length) {
            try {
                wait(LOOK_MILLIS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new IllegalStateException("interrupted while waiting for a token", e);
            }
            if (moves != seen) {
                seen = moves;
                since = System.nanoTime();
            } else if (System.nanoTime() - since > PATIENCE_NANOS) {
                throw new IllegalStateException(
                        "token %d of text %d was not chosen: no stage has made progress for %d s"
                                .formatted(text.length, number, PATIENCE_NANOS / 1_000_000_000));
            }
        }
    }

    /** The first stage continues while the listener is notified. */
    @Override
    public void choose(int number, int place, float[] logits) {
        Text text = texts.get(number);
        if (hasEnded(text)) {
            return;
        }
        FiniteWeights.require(logits);
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

    /** Returns the continuations of the texts so far. */
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
