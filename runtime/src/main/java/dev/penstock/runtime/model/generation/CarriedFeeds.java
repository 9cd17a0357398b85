package dev.penstock.runtime.model.generation;

import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.shape.Feed;
import dev.penstock.runtime.model.shape.FeedRows;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What a unit feeds, written behind its rows in the tensor between two stages: for stages in
 * several processes, which have no {@link TextFeed} in common. Whole numbers are two floats of 16
 * bits each, which every device and every link leaves as they are.
 *
 * <pre>
 *   rows that are fed | rows of no use, as the unit has fewer | how many runs, and the eight numbers of each
 * </pre>
 *
 * @param width columns of the tensor
 * @param texts that a unit feeds at most
 */
record CarriedFeeds(int width, int texts) {
    private static final int NUMBERS = 8;
    private static final int HALF_BITS = 16;
    private static final int HALF = 0xFFFF;

    /** Returns how many rows it takes. */
    int rows() {
        return Math.ceilDiv(2 * (1 + NUMBERS * texts), width);
    }

    private Tensor place(Tensor boundary) {
        return boundary.rows(boundary.rows() - rows(), rows());
    }

    /**
     * Writes it into a stage's output.
     *
     * @param feeds null if the unit feeds nothing
     */
    void write(@Nullable FeedRows feeds, Tensor output) {
        float[] halves = new float[rows() * width];
        List<FeedRows.Run> runs = feeds == null ? List.of() : feeds.runs();
        int at = put(halves, 0, runs.size());
        for (FeedRows.Run run : runs) {
            Feed feed = run.feed();
            at = put(halves, at, run.text());
            at = put(halves, at, run.keptFrom());
            at = put(halves, at, feed.from());
            at = put(halves, at, feed.count());
            at = put(halves, at, feed.position());
            at = put(halves, at, feed.place());
            at = put(halves, at, feed.dropped());
            at = put(halves, at, feed.chooses() ? 1 : 0);
        }
        place(output).write(MemorySegment.ofArray(halves));
    }

    private static int put(float[] halves, int at, int number) {
        halves[at] = number >>> HALF_BITS;
        halves[at + 1] = number & HALF;
        return at + 2;
    }

    /**
     * Reads it from a stage's input.
     *
     * @return null if the unit feeds nothing
     * @throws IllegalStateException if that is no such thing
     */
    @Nullable FeedRows read(Tensor input) {
        MemorySegment halves = place(input).contents();
        int count = number(halves, 0);
        if (count < 0 || count > texts) {
            throw new IllegalStateException(
                    "expected a unit of 0 to %d texts, got one of %d".formatted(texts, count));
        }
        List<Integer> numbers = new ArrayList<>();
        Map<Integer, Integer> keptFrom = new HashMap<>();
        List<Feed> feeds = new ArrayList<>();
        for (int run = 0; run < count; run++) {
            int at = 1 + run * NUMBERS;
            numbers.add(number(halves, at));
            keptFrom.put(number(halves, at), number(halves, at + 1));
            feeds.add(
                    new Feed(
                            number(halves, at + 2),
                            number(halves, at + 3),
                            number(halves, at + 4),
                            number(halves, at + 5),
                            number(halves, at + 6),
                            number(halves, at + 7) == 1));
        }
        return count == 0 ? null : FeedRows.of(numbers, feeds, keptFrom::get);
    }

    private static int number(MemorySegment halves, int index) {
        int high = (int) halves.getAtIndex(ValueLayout.JAVA_FLOAT, 2L * index);
        int low = (int) halves.getAtIndex(ValueLayout.JAVA_FLOAT, 2L * index + 1);
        return high << HALF_BITS | low;
    }
}
