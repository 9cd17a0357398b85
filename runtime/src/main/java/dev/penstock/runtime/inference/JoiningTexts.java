package dev.penstock.runtime.inference;

import static java.util.Objects.requireNonNull;

import dev.penstock.runtime.inference.Continuation.End;
import dev.penstock.runtime.model.generation.TextFeed;
import dev.penstock.runtime.model.generation.TokenSampler;
import dev.penstock.runtime.model.shape.Feed;
import dev.penstock.runtime.model.shape.FeedRows;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.Positions;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/**
 * Texts that share every pass of a pipeline, join between two units of work and leave when they end
 * (continuous batching). A text keeps a place in one micro-batch; who finds none waits in a queue.
 * What a unit feeds is decided when the first stage begins it, and the other stages see the same:
 *
 * <pre>
 *   places 0 and 2 are of micro-batch 0          unit      0    1    2    3
 *                                            place 0    AAAA    A    A    A      a prompt, then tokens
 *                                            place 2            BB   B    C      B ends, C joins
 * </pre>
 *
 * <p>Passes go on without end. With nothing to do, the first stage waits a moment for somebody to
 * come and leaves the rest of the pass empty, so that deadlines of a pipeline that stands still
 * keep their meaning. Safe to use from any thread; samplers belong to the last stage.
 */
public final class JoiningTexts implements TextFeed, AutoCloseable {
    private static final long PATIENCE_NANOS = 60_000_000_000L;
    private static final long IDLE_NANOS = 1_000_000_000L;

    /** Slices of a pass: enough that its beginning and end cost nothing. */
    private static final int SLICES = 32;

    /** Slices of prompts beside which texts that already grow are not slowed down much. */
    private static final int PROMPT_SLICES = 2;

    /**
     * What texts may take.
     *
     * @param together texts that grow side by side, if there is room for what they keep
     * @param waiting texts in the queue
     * @param tokens of a text with its prompt
     * @param kept tokens of all texts whose keys and values have room at a time, at least {@code
     *     tokens}; a text takes room for its whole length when it begins to grow; without effect
     *     where no layer attends
     */
    public record Limits(int together, int waiting, int tokens, int kept) {
        public Limits {
            if (together < 1 || waiting < 0 || tokens < 2 || kept < tokens) {
                throw new IllegalArgumentException(
                        "expected 1 text or more, a queue of 0 or more, 2 tokens or more and room for them, got %d, %d, %d and %d"
                                .formatted(together, waiting, tokens, kept));
            }
        }

        /** With room for as many of the longest texts as grow side by side. */
        public Limits(int together, int waiting, int tokens) {
            this(together, waiting, tokens, Integer.MAX_VALUE);
        }
    }

    private static final class Text {
        final TextRequest request;
        final TextProgress progress;
        final List<Feed> feeds;
        final int[] tokens;
        final TokenSampler sampler;
        int keptFrom;
        int length;
        int fed;
        long arrival;
        boolean ended;

        Text(TextRequest request, TextProgress progress, List<Feed> feeds) {
            this.request = request;
            this.progress = progress;
            this.feeds = feeds;
            length = request.prompt().length;
            tokens = Arrays.copyOf(request.prompt(), length + request.count());
            sampler = new TokenSampler(request.sampling(), request.number());
        }
    }

    private final ModelShape shape;
    private final int sliceTokens;
    private final Limits limits;
    private final int microBatches;
    private final int places;
    private final int rows;
    private final Deque<Text> queue = new ArrayDeque<>();

    /** Texts in flight by number, which is its place and a multiple of the number of places. */
    private final Map<Integer, Text> texts = new TreeMap<>();

    /** What the units of this pass feed, as far as the first stage has begun them. */
    private final Map<Integer, Optional<FeedRows>> units = new HashMap<>();

    private final KeptRoom room;
    private final int[] nextNumber;
    private long pass = -1;
    private long idleSince;
    private long moves;
    private long arrivals;
    private boolean closed;

    /** Why the last pass was not finished, until the next one begins; empty if nobody says. */
    private @Nullable String interrupted;

    /**
     * @param stages of the pipeline: each has a micro-batch to work on, if there are enough texts
     * @param sliceTokens maximum tokens of a slice of a prompt
     */
    JoiningTexts(ModelShape shape, int stages, int sliceTokens, Limits limits) {
        this.shape = shape;
        this.sliceTokens = sliceTokens;
        this.limits = limits;
        microBatches = Math.min(stages, limits.together());
        int each = Math.ceilDiv(limits.together(), microBatches);
        places = each * microBatches;
        int slice = Math.min(sliceTokens, Math.min(shape.context(), limits.tokens()));
        rows = Math.min(each * slice, PROMPT_SLICES * slice + each);
        room =
                shape.block().attends()
                        ? KeptRoom.of(places, cachedTokens(), limits.kept())
                        : KeptRoom.of(places, 1, places);
        nextNumber = new int[places];
        Arrays.setAll(nextNumber, place -> place);
    }

    /**
     * Lets texts join; all or none. Each is known by its index.
     *
     * @param requests each of at most as many tokens as the limit, with a prompt of at most the
     *     model's context
     * @param progress of each
     * @return what ends each early; empty if there are not that many places in the queue
     * @throws IllegalStateException if the pipeline has ended, or does not work at the moment
     */
    public Optional<List<Runnable>> submit(
            List<TextRequest> requests, IntFunction<TextProgress> progress) {
        List<Text> joining = new ArrayList<>();
        for (int i = 0; i < requests.size(); i++) {
            TextRequest request = requests.get(i);
            requireRoom(request);
            joining.add(new Text(request, progress.apply(i), feeds(request)));
        }
        synchronized (this) {
            if (closed || interrupted != null) {
                throw new IllegalStateException("the pipeline does not work");
            }
            int free = places - texts.size() + limits.waiting() - queue.size();
            if (joining.size() > free) {
                return Optional.empty();
            }
            queue.addAll(joining);
            notifyAll();
        }
        return Optional.of(joining.stream().<Runnable>map(text -> () -> cancel(text)).toList());
    }

    private List<Feed> feeds(TextRequest request) {
        return FeedPlan.of(shape, request.prompt().length, request.count(), sliceTokens, true);
    }

    private void requireRoom(TextRequest request) {
        int prompt = request.prompt().length;
        if (prompt > shape.context() || prompt + request.count() > limits.tokens()) {
            throw new IllegalArgumentException(
                    "expected a prompt of at most %d tokens and a text of at most %d, got %d and %d"
                            .formatted(
                                    shape.context(),
                                    limits.tokens(),
                                    prompt,
                                    prompt + request.count()));
        }
    }

    private synchronized void cancel(Text text) {
        end(text, End.STOPPED);
        queue.remove(text);
        if (texts.values().remove(text)) {
            leave(text);
        }
    }

    /**
     * What the text kept is free for the next one at once: every stage works on units in the order
     * in which they were begun, so none writes for this text after it has begun the next one.
     */
    private void leave(Text text) {
        room.give(text.keptFrom, kept(text));
    }

    private int kept(Text text) {
        // a state is as large for every text, and has its place with it
        return shape.block().attends() ? FeedPlan.cachedTokens(shape, text.tokens.length) : 1;
    }

    /** Returns whether the stages have been built and their first pass has begun. */
    public synchronized boolean isReady() {
        return pass >= 0 && !closed && interrupted == null;
    }

    /**
     * Returns what keeps the pipeline from working until it is whole again; empty if it works, or
     * nobody knows.
     */
    public synchronized Optional<String> interruption() {
        return Optional.ofNullable(interrupted).filter(cause -> !cause.isEmpty() && !closed);
    }

    /**
     * Waits until the stages have been built, or nothing is served any more.
     *
     * @return {@link #isReady}
     */
    public synchronized boolean awaitReady() throws InterruptedException {
        while (pass < 0 && !closed) {
            wait();
        }
        return isReady();
    }

    /** Returns how many texts are growing. */
    public synchronized int growing() {
        return texts.size();
    }

    /** Returns how many tokens have their room for keys and values taken by texts. */
    public synchronized int taken() {
        return shape.block().attends() ? room.taken() : 0;
    }

    /** Returns how many texts wait for a place. */
    public synchronized int waiting() {
        return queue.size();
    }

    /** Returns the limits of texts and queue. */
    public Limits limits() {
        return limits;
    }

    int microBatches() {
        return microBatches;
    }

    @Override
    public int texts() {
        return places;
    }

    @Override
    public List<Integer> sliceRows() {
        return Collections.nCopies(SLICES, rows);
    }

    @Override
    public int cachedTokens() {
        return FeedPlan.cachedTokens(shape, limits.tokens());
    }

    @Override
    public int keptTokens() {
        return shape.block().attends() ? room.tokens() : 0;
    }

    @Override
    public int places() {
        return switch (shape.positions()) {
            case Positions.Learned _ -> cachedTokens();
            case Positions.Rotary _ -> limits.tokens();
        };
    }

    @Override
    public synchronized void begin(int stage, long newPass) {
        if (stage > 0) {
            return;
        }
        if (newPass <= pass) {
            endAll(); // begun again after a failure: what was kept of them is void
        }
        pass = newPass;
        interrupted = null;
        units.clear();
        idleSince = System.nanoTime();
        notifyAll();
    }

    @Override
    public synchronized @Nullable FeedRows feed(int microBatch, int slice) {
        moves++;
        int unit = slice * microBatches + microBatch;
        Optional<FeedRows> known = units.get(unit);
        if (known == null) { // the first stage asks before any other
            awaitTexts();
            admit(microBatch);
            known = next(microBatch);
            units.put(unit, known);
        }
        return known.filter(feeds -> !haveEnded(feeds)).orElse(null);
    }

    private void awaitTexts() {
        while (queue.isEmpty() && texts.isEmpty() && !closed) {
            long left = idleSince + IDLE_NANOS - System.nanoTime();
            if (left <= 0) {
                return;
            }
            waitFor(left);
        }
    }

    /**
     * Gives places to those who wait longest, unless another micro-batch has fewer texts, or the
     * first in the queue has no room yet: none overtakes it.
     */
    private void admit(int microBatch) {
        for (int place = microBatch; place < places && !queue.isEmpty(); place += microBatches) {
            if (isFree(place) && hasFewest(microBatch)) {
                OptionalInt from = room.take(kept(queue.element()));
                if (from.isEmpty()) {
                    return;
                }
                Text text = queue.remove();
                text.keptFrom = from.getAsInt();
                text.arrival = arrivals++;
                texts.put(nextNumber[place], text);
                int following = nextNumber[place] + places;
                nextNumber[place] = following < 0 ? place : following;
            }
        }
    }

    private boolean isFree(int place) {
        return texts.keySet().stream().noneMatch(number -> number % places == place);
    }

    private boolean hasFewest(int microBatch) {
        int[] count = new int[microBatches];
        texts.keySet().forEach(number -> count[number % places % microBatches]++);
        return Arrays.stream(count).min().orElse(0) == count[microBatch];
    }

    /** Chosen tokens first, then prompts from the oldest on, as far as there are rows. */
    private Optional<FeedRows> next(int microBatch) {
        List<Integer> feeding = new ArrayList<>();
        List<Feed> feeds = new ArrayList<>();
        int free = rows;
        Comparator<Map.Entry<Integer, Text>> order =
                Comparator.comparingInt(entry -> nextFeed(entry).count() == 1 ? 0 : 1);
        List<Map.Entry<Integer, Text>> ofMicroBatch =
                texts.entrySet().stream()
                        .filter(entry -> entry.getKey() % places % microBatches == microBatch)
                        .filter(entry -> entry.getValue().fed < entry.getValue().feeds.size())
                        .sorted(order.thenComparingLong(entry -> entry.getValue().arrival))
                        .toList();
        for (Map.Entry<Integer, Text> entry : ofMicroBatch) {
            Feed feed = nextFeed(entry);
            if (feed.count() <= free) {
                feeding.add(entry.getKey());
                feeds.add(feed);
                entry.getValue().fed++;
                free -= feed.count();
            }
        }
        return feeding.isEmpty()
                ? Optional.empty()
                : Optional.of(
                        FeedRows.of(
                                feeding,
                                feeds,
                                number -> requireNonNull(texts.get(number)).keptFrom));
    }

    private static Feed nextFeed(Map.Entry<Integer, Text> entry) {
        return entry.getValue().feeds.get(entry.getValue().fed);
    }

    private boolean haveEnded(FeedRows feeds) {
        return feeds.runs().stream().noneMatch(run -> texts.containsKey(run.text()));
    }

    @Override
    public synchronized int @Nullable [] await(FeedRows feeds) {
        int[] tokens = new int[feeds.count()];
        for (FeedRows.Run run : feeds.runs()) {
            Feed feed = run.feed();
            Text text = awaitTokens(run.text(), feed.end());
            if (text != null) {
                System.arraycopy(text.tokens, feed.from(), tokens, run.firstRow(), feed.count());
            }
        }
        return haveEnded(feeds) ? null : tokens;
    }

    /** Waits until the text has that many tokens; null if it has ended. */
    private @Nullable Text awaitTokens(int number, int length) {
        long seen = moves;
        long since = System.nanoTime();
        Text text = texts.get(number);
        while (text != null && text.length < length) {
            waitFor(IDLE_NANOS);
            if (moves != seen) {
                seen = moves;
                since = System.nanoTime();
            } else if (System.nanoTime() - since > PATIENCE_NANOS) {
                throw new IllegalStateException(
                        "token %d of text %d was not chosen: no stage has made progress for %d s"
                                .formatted(text.length, number, PATIENCE_NANOS / 1_000_000_000));
            }
            text = texts.get(number);
        }
        return text;
    }

    /** Waits within a loop: it may end early. */
    private void waitFor(long nanos) {
        try {
            TimeUnit.MILLISECONDS.timedWait(this, Math.max(1, nanos / 1_000_000));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while waiting for a token", e);
        }
    }

    @Override
    public void choose(int number, int place, float[] logits) {
        Text text = inFlight(number);
        if (text == null) {
            return;
        }
        FiniteWeights.require(logits);
        int token = text.sampler.choose(logits);
        OptionalInt likeliest = text.request.likeliest();
        append(
                number,
                text,
                token,
                likeliest.isEmpty()
                        ? null
                        : LogProbabilities.of(logits, token, likeliest.getAsInt()));
    }

    private synchronized @Nullable Text inFlight(int number) {
        return texts.get(number);
    }

    private synchronized void append(
            int number, Text text, int token, @Nullable LogProbabilities chances) {
        moves++;
        if (text.ended) {
            return;
        }
        if (text.request.endOfText().stream().anyMatch(end -> end == token)) {
            end(text, End.END_OF_TEXT);
        } else {
            text.tokens[text.length++] = token;
            if (chances == null) {
                text.progress.onToken(token);
            } else {
                text.progress.onToken(chances);
            }
            if (text.length == text.tokens.length) {
                end(text, End.LENGTH);
            }
        }
        if (text.ended) {
            texts.remove(number);
            leave(text);
        }
        notifyAll();
    }

    private void end(Text text, End end) {
        if (!text.ended) {
            text.ended = true;
            text.progress.onEnd(end);
        }
        notifyAll();
    }

    private void endAll() {
        for (Text text : texts.values()) {
            end(text, End.STOPPED);
            leave(text);
        }
        texts.clear();
    }

    @Override
    public synchronized void interrupt(String cause) {
        if (interrupted == null || interrupted.isEmpty()) {
            interrupted = cause;
        }
        endAll();
        queue.forEach(text -> end(text, End.STOPPED));
        queue.clear();
    }

    /** Ends the texts in flight; those that wait may still have their turn. */
    @Override
    public synchronized void stop() {
        endAll();
    }

    /** Ends all texts and lets none join any more. */
    @Override
    public synchronized void close() {
        closed = true;
        endAll();
        queue.forEach(text -> end(text, End.STOPPED));
        queue.clear();
        notifyAll();
    }
}
