package dev.penstock.runtime.inference;

import dev.penstock.runtime.evaluation.Score;
import dev.penstock.runtime.evaluation.Window;
import dev.penstock.runtime.model.generation.TextFeed;
import dev.penstock.runtime.model.shape.Feed;
import dev.penstock.runtime.model.shape.FeedRows;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntConsumer;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Windows that are scored: each is read at once, as one slice, beside as many others as there is
 * room for. A pass has a number of micro-batches, and there are as many passes as it takes. Scores
 * are written by the last stage alone, and read when all stages have ended.
 */
final class ScoringFeed implements TextFeed {
    /** Rows from which on products are no faster. */
    private static final int ROWS = 1024;

    /** Tokens of all windows of a unit whose keys and values a stage keeps, unless one has more. */
    private static final int KEPT_TOKENS = 2048;

    private static final int MOST_TOGETHER = 16;

    /** Logits of a large vocabulary take more room than everything else. */
    private static final int ROWS_WITH_LOGITS = 128;

    private final List<Window> windows;
    private final IntConsumer progress;
    private final int longest;

    /** Entry i: the first window of unit i; and at last how many windows there are. */
    private final List<Integer> units = new ArrayList<>();

    private final int microBatches;
    private final int together;
    private final int rowsWithLogits;
    private final double[] logLikelihoods;
    private final boolean[] greedy;
    private final boolean[] done;
    private volatile long pass;
    private volatile boolean stopped;

    /**
     * @param windows at least one
     */
    ScoringFeed(List<Window> windows, int stages, IntConsumer progress) {
        this.windows = windows;
        this.progress = progress;
        longest = windows.stream().mapToInt(Window::inputs).max().orElseThrow();
        int room = Math.max(1, Math.min(MOST_TOGETHER, KEPT_TOKENS / longest));
        int rows = 0;
        for (int window = 0; window < windows.size(); window++) {
            int more = windows.get(window).inputs();
            boolean fits = rows + more <= Math.max(ROWS, longest);
            if (units.isEmpty() || !fits || window - units.getLast() == room) {
                units.add(window);
                rows = 0;
            }
            rows += more;
        }
        units.add(windows.size());
        together =
                IntStream.range(1, units.size())
                        .map(unit -> units.get(unit) - units.get(unit - 1))
                        .max()
                        .orElseThrow();
        int targets = windows.stream().mapToInt(Window::targets).max().orElseThrow();
        rowsWithLogits = Math.min(ROWS_WITH_LOGITS, targets * together);
        microBatches = Math.min(units.size() - 1, Math.max(8, 4 * stages));
        logLikelihoods = new double[windows.size()];
        greedy = new boolean[windows.size()];
        done = new boolean[windows.size()];
    }

    int microBatches() {
        return microBatches;
    }

    int passes() {
        return Math.ceilDiv(units.size() - 1, microBatches);
    }

    /** Returns the scores; empty if there are windows without one. */
    List<Score> scores() {
        boolean all = IntStream.range(0, done.length).allMatch(window -> done[window]);
        return all
                ? IntStream.range(0, done.length)
                        .mapToObj(window -> new Score(logLikelihoods[window], greedy[window]))
                        .toList()
                : List.of();
    }

    @Override
    public int texts() {
        return together;
    }

    @Override
    public List<Integer> sliceRows() {
        return List.of(
                IntStream.range(0, units.size() - 1)
                        .map(unit -> rowsOf(unit).count())
                        .max()
                        .orElseThrow());
    }

    private FeedRows rowsOf(int unit) {
        List<Integer> texts =
                IntStream.range(units.get(unit), units.get(unit + 1)).boxed().toList();
        return FeedRows.of(
                texts,
                texts.stream()
                        .map(window -> new Feed(0, windows.get(window).inputs(), 0, true))
                        .toList(),
                window -> window % together * longest);
    }

    @Override
    public int cachedTokens() {
        return longest;
    }

    @Override
    public void begin(int stage, long newPass) {
        pass = newPass;
    }

    @Override
    public @Nullable FeedRows feed(int microBatch, int slice) {
        long unit = pass * microBatches + microBatch;
        return stopped || unit >= units.size() - 1 ? null : rowsOf((int) unit);
    }

    @Override
    public int @Nullable [] await(FeedRows feeds) {
        int[] tokens = new int[feeds.count()];
        for (FeedRows.Run run : feeds.runs()) {
            Window window = windows.get(run.text());
            System.arraycopy(window.row(), window.from(), tokens, run.firstRow(), window.inputs());
        }
        return stopped ? null : tokens;
    }

    @Override
    public int choosing(FeedRows.Run run) {
        return windows.get(run.text()).targets();
    }

    @Override
    public int rowsWithLogits() {
        return rowsWithLogits;
    }

    /** A pass may be repeated: the first target of a window begins it anew. */
    @Override
    public void choose(int text, int place, float[] logits) {
        FiniteWeights.require(logits);
        Window window = windows.get(text);
        if (place == window.inputs() - window.targets()) {
            logLikelihoods[text] = 0;
            greedy[text] = true;
        }
        int target = window.token(place + 1);
        int likeliest = likeliest(logits);
        logLikelihoods[text] += logLikelihood(logits, target, logits[likeliest]);
        greedy[text] &= target == likeliest;
        if (place == window.inputs() - 1) {
            done[text] = true;
            progress.accept(text + 1);
        }
    }

    /** The first among equals. */
    private static int likeliest(float[] logits) {
        int best = 0;
        for (int i = 1; i < logits.length; i++) {
            if (logits[i] > logits[best]) {
                best = i;
            }
        }
        return best;
    }

    private static double logLikelihood(float[] logits, int token, double largest) {
        double sum = 0;
        for (float logit : logits) {
            sum += Math.exp(logit - largest);
        }
        return logits[token] - largest - Math.log(sum);
    }

    @Override
    public void stop() {
        stopped = true;
    }
}
