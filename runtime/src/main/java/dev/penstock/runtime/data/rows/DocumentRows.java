package dev.penstock.runtime.data.rows;

import java.util.Arrays;
import java.util.function.LongPredicate;

/**
 * Rows of one document each, or of a part of one that is longer than the context. A row of n tokens
 * has n targets, so it spans n + 1 tokens of its document; the next part begins with the last of
 * them. Documents of a single token have no target and no row.
 */
public final class DocumentRows {
    private long[] starts = new long[1024];
    private int[] lengths = new int[1024];
    private int count;
    private long tokens;

    private DocumentRows() {}

    /**
     * Finds the rows of a stretch of text. A document begins and one ends with it in any case.
     *
     * @param begins whether a document begins with a token
     * @param from the first token
     * @param to behind the last token
     */
    public static DocumentRows of(LongPredicate begins, long from, long to, int context) {
        var rows = new DocumentRows();
        long start = from;
        for (long i = from + 1; i <= to; i++) {
            if (i == to || begins.test(i)) {
                rows.add(start, i, context);
                start = i;
            }
        }
        return rows;
    }

    private void add(long first, long end, int context) {
        for (long start = first; start < end - 1; start += context) {
            if (count == starts.length) {
                starts = Arrays.copyOf(starts, 2 * count);
                lengths = Arrays.copyOf(lengths, 2 * count);
            }
            starts[count] = start;
            lengths[count] = (int) Math.min(context, end - 1 - start);
            tokens += lengths[count];
            count++;
        }
    }

    public int count() {
        return count;
    }

    /** Returns the tokens of all rows. */
    public long tokens() {
        return tokens;
    }

    /** Returns the first token of a row. */
    public long start(int row) {
        return starts[row];
    }

    /** Returns the tokens of a row, each of which has a target: at least 1. */
    public int length(int row) {
        return lengths[row];
    }

    /**
     * Returns the row that a run trains on as its sequence number {@code sequence}, counted from 0:
     * all once in every epoch, each time in another order.
     */
    public int drawn(long sequence, long seed) {
        long epoch = sequence / count;
        long key = Permutation.mix(seed) ^ Permutation.mix(~epoch);
        return (int) new Permutation(count, key).at(sequence % count);
    }
}
