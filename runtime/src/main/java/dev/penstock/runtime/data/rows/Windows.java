package dev.penstock.runtime.data.rows;

/**
 * The windows of {@code context + 1} tokens in a stretch of text, each starting with the last token
 * of the previous one, so that no token is a target twice in an epoch. From epoch to epoch the grid
 * of windows is shifted by a random amount below a context, and the windows come in another random
 * order. Everything follows from the seed and the number of the sequence.
 */
public final class Windows {
    private final long first;
    private final int context;
    private final long seed;
    private final long count;
    private final long shifts;

    /**
     * @param first start of the stretch
     * @param length of the stretch, at least {@code context + 1}
     */
    public Windows(long first, long length, int context, long seed) {
        this.first = first;
        this.context = context;
        this.seed = seed;
        // as many as fit whatever the shift, so that every epoch has the same number
        this.count = Math.max(1, (length - context) / context);
        this.shifts = Math.min(context, length - count * context);
    }

    /** Returns the windows of one epoch. */
    public long count() {
        return count;
    }

    /** Returns the first token of training sequence {@code sequence} of the run, counted from 0. */
    public long start(long sequence) {
        long epoch = sequence / count;
        long key = Permutation.mix(seed) ^ Permutation.mix(~epoch);
        long window = new Permutation(count, key).at(sequence % count);
        long shift = Long.remainderUnsigned(Permutation.mix(key), shifts);
        return first + shift + window * context;
    }
}
