package dev.penstock.cuda.cpu;

import dev.penstock.cuda.memory.Scratch;

/**
 * The matrix products of attention, for one head's block of query rows and the keys that they see,
 * on one thread. The rows of scores between the products are the caller's.
 *
 * <pre>
 *   forward                       backward
 *   p = q k^T                     p  = q k^T      scores again
 *   softmax of p, by rows         dp = dy v^T
 *   y = p v                       gradient of the scores in place of dp, by rows
 *                                 dq = dp k       dk += dp^T q       dv += p^T dy
 *
 *   q, y, dy, dq   rows x width           k, v, dk, dv   keys x width
 *   p, dp          rows x keys, in the thread's scratch
 * </pre>
 *
 * <p>There is one for each thread, filled again for every block.
 */
final class AttentionPass {
    /** More rows make better products, but more of the square above the diagonal is wasted. */
    static final int QUERY_ROWS = 64;

    /** Keys of a window begin at such multiples: then a key's lane does not depend on the block. */
    private static final int KEYS_AT_ONCE = 16;

    /** One head's columns of some rows of a tensor. */
    static final class Strip {
        private long address;
        private int stride;

        void set(long newAddress, int newStride) {
            address = newAddress;
            stride = newStride;
        }

        /** Address of the first element of a row. */
        long row(int row) {
            return address + (long) row * stride * Float.BYTES;
        }
    }

    final Strip q = new Strip();
    final Strip k = new Strip();
    final Strip v = new Strip();
    final Strip y = new Strip();
    final Strip dy = new Strip();
    final Strip dq = new Strip();
    final Strip dk = new Strip();
    final Strip dv = new Strip();

    private final MatrixProduct library;
    private final Product product;
    private final Scratch scratch;
    private final boolean adds;

    private int rows;
    private int keys;
    private int width;
    private long p;
    private long dp;

    /**
     * @param adds whether {@code y} and {@code dq} are added to what earlier blocks of keys left
     *     there, or overwritten
     */
    AttentionPass(MatrixProduct library, int thread, Scratch scratch, boolean adds) {
        this.library = library;
        this.product = new Product(thread);
        this.scratch = scratch;
        this.adds = adds;
    }

    /** Bytes of a block's scores against so many keys. */
    static long scoreBytes(int keys) {
        return (long) Float.BYTES * QUERY_ROWS * across(keys);
    }

    /** Elements from one row of scores to the next: whole cache lines. */
    private static int across(int keys) {
        return (keys + 15) & -16;
    }

    /** Where to begin with the keys, so that this one is among them. */
    static int keysFrom(int firstKey) {
        return firstKey & -KEYS_AT_ONCE;
    }

    /**
     * Begins a block; its strips are set afterwards.
     *
     * @param squares how many blocks of scores it needs: 1 forward, 2 backward
     * @param mostKeys keys of the largest block of the op, at most which {@code keys} are
     * @param extraBytes room behind the scores, see {@link #extra}
     */
    void begin(int squares, int mostKeys, int extraBytes) {
        p = scratch.reserve(squares * scoreBytes(mostKeys) + extraBytes);
        dp = p + scoreBytes(mostKeys);
    }

    void size(int newRows, int newKeys, int newWidth) {
        rows = newRows;
        keys = newKeys;
        width = newWidth;
    }

    int rows() {
        return rows;
    }

    int keys() {
        return keys;
    }

    int width() {
        return width;
    }

    /** Address of a row of scores, or of probabilities. */
    long p(int row) {
        return p + (long) row * across(keys) * Float.BYTES;
    }

    /** Address of a row of their gradient. */
    long dp(int row) {
        return dp + (long) row * across(keys) * Float.BYTES;
    }

    /** Address of the caller's own room in a forward. */
    long extra() {
        return dp;
    }

    /** {@code p = q k^T}. */
    void scores() {
        library.multiply(
                product.of(rows, keys, width)
                        .a(q.address, q.stride)
                        .bTransposed(k.address, k.stride)
                        .to(p, across(keys)));
    }

    /** {@code y = p v}. */
    void values() {
        library.multiply(
                product.of(rows, width, keys)
                        .a(p, across(keys))
                        .b(v.address, v.stride)
                        .to(y.address, y.stride, adds));
    }

    /** {@code dp = dy v^T}. */
    void gradientOfProbabilities() {
        library.multiply(
                product.of(rows, keys, width)
                        .a(dy.address, dy.stride)
                        .bTransposed(v.address, v.stride)
                        .to(dp, across(keys)));
    }

    /** {@code dq = dp k}, {@code dk += dp^T q}, {@code dv += p^T dy}. */
    void gradients() {
        int across = across(keys);
        library.multiply(
                product.of(rows, width, keys)
                        .a(dp, across)
                        .b(k.address, k.stride)
                        .to(dq.address, dq.stride, adds));
        library.multiply(
                product.of(keys, width, rows)
                        .aTransposed(dp, across)
                        .b(q.address, q.stride)
                        .addTo(dk.address, dk.stride));
        library.multiply(
                product.of(keys, width, rows)
                        .aTransposed(p, across)
                        .b(dy.address, dy.stride)
                        .addTo(dv.address, dv.stride));
    }
}
