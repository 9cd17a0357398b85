package dev.penstock.cuda.cpu;

import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.memory.Scratch;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Causal attention in blocks of query rows against all earlier keys: scores of one block and one
 * head at a time, softmax row by row, only the log of the sum kept for the backward, which computes
 * the scores again.
 *
 * <p>Bits do not depend on slices or threads: query blocks are counted from grid lines, which
 * slices end on; a head belongs to one thread; the backward takes blocks last first, as reversed
 * slices do.
 */
final class CpuAttention {
    /** More rows make better products, but more of the square above the diagonal is wasted. */
    private static final int QUERY_ROWS = 64;

    /** Sum and maximum of each row. */
    private static final int SUM_BYTES = 2 * Float.BYTES * QUERY_ROWS;

    private final WorkerPool pool;
    private final MatrixProduct product;
    private final SoftmaxKernels softmax;
    private final Scratch[] scratch;

    CpuAttention(WorkerPool pool, MatrixProduct product, Lanes lanes, Scratch[] scratchOfThreads) {
        this.pool = pool;
        this.product = product;
        this.softmax = new SoftmaxKernels(lanes);
        this.scratch = scratchOfThreads;
    }

    /** The tensors of one call. {@code y}, {@code dy}: rows of the unit; the rest as in Kernels. */
    private record Call(
            Tensor qkv, Tensor y, Tensor logSumExp, int heads, int context, TokenBlocks blocks) {
        int headWidth() {
            return y.columns() / heads;
        }

        float scale() {
            return (float) (1 / Math.sqrt(headWidth()));
        }

        int keys() {
            return CpuAttention.keys(blocks);
        }

        /** Queries, keys or values (part 0, 1, 2) of one head of one sequence, from a token on. */
        long part(Tensor qkv, int part, int sequence, int head, int token) {
            long row = (long) sequence * context + token;
            int column = part * y.columns() + head * headWidth();
            return qkv.address() + Float.BYTES * (row * qkv.stride() + column);
        }

        /** One head of rows of the unit, from the row of this token of its sequence on. */
        long unit(Tensor tensor, int sequence, int token, int head) {
            long row = (long) sequence * blocks.tokens() + token - blocks.firstToken();
            return tensor.address() + Float.BYTES * (row * tensor.stride() + head * headWidth());
        }

        long logSumExp(int sequence, int token, int head) {
            int row = sequence * blocks.tokens() + token - blocks.firstToken();
            return logSumExp.address() + 4L * ((long) row * logSumExp.stride() + head);
        }
    }

    void forward(
            Tensor qkv, Tensor y, Tensor logSumExp, int heads, int context, TokenBlocks blocks) {
        Call call = new Call(qkv, y, logSumExp, heads, context, blocks);
        eachHead(call, 1, (thread, sequence, head) -> forwardHead(call, thread, sequence, head));
    }

    void backward(
            Tensor qkv,
            Tensor y,
            Tensor logSumExp,
            Tensor dy,
            Tensor dQkv,
            int heads,
            int context,
            TokenBlocks blocks) {
        Call call = new Call(qkv, y, logSumExp, heads, context, blocks);
        eachHead(
                call,
                2,
                (thread, sequence, head) -> backwardHead(call, dy, dQkv, thread, sequence, head));
    }

    @FunctionalInterface
    private interface HeadWork {
        void run(int thread, int sequence, int head);
    }

    /** Heads are taken by whichever thread is free: a head's bits do not depend on its thread. */
    private void eachHead(Call call, int squares, HeadWork work) {
        for (Scratch s : scratch) {
            s.reserve(scratchBytes(squares, call.blocks));
        }
        int items = call.blocks.sequences() * call.heads;
        AtomicInteger next = new AtomicInteger();
        pool.run(
                elements(call.heads, call.blocks),
                thread -> {
                    for (int i = next.getAndIncrement(); i < items; i = next.getAndIncrement()) {
                        work.run(thread, i / call.heads, i % call.heads);
                    }
                });
    }

    /**
     * Scratch of a thread.
     *
     * @param squares of queries and keys: 1 forward, 2 backward
     */
    static long scratchBytes(int squares, TokenBlocks blocks) {
        return squares * scoreBytes(keys(blocks)) + SUM_BYTES;
    }

    /** Most keys of a block with fewer queries than {@code rows}; 0 if there is none. */
    static int keysOfSmallBlock(TokenBlocks blocks, int rows) {
        int most = 0;
        int first = blocks.firstToken();
        while (first < keys(blocks)) {
            int end = blockEnd(blocks, first);
            most = end - first < rows ? end : most;
            first = end;
        }
        return most;
    }

    /** End of a slice in its sequence: no key lies beyond. */
    private static int keys(TokenBlocks blocks) {
        return blocks.firstToken() + blocks.tokens();
    }

    /** How much there is to do for the threads. */
    static long elements(int heads, TokenBlocks blocks) {
        return (long) heads * blocks.rows() * keys(blocks);
    }

    private static long scoreBytes(Call call) {
        return scoreBytes(call.keys());
    }

    private static long scoreBytes(int keys) {
        return 4L * QUERY_ROWS * rowStride(keys);
    }

    /** Whole cache lines. */
    private static int rowStride(int keys) {
        return (keys + 15) & -16;
    }

    private void forwardHead(Call call, int thread, int sequence, int head) {
        int first = call.blocks.firstToken();
        while (first < call.keys()) {
            int end = blockEnd(call.blocks, first);
            forwardBlock(call, thread, sequence, head, first, end);
            first = end;
        }
    }

    /** Blocks end at grid lines and at multiples of the block size counted from them. */
    private static int blockEnd(TokenBlocks blocks, int first) {
        int grid = blocks.grid();
        int line = first / grid * grid;
        int end = line + ((first - line) / QUERY_ROWS + 1) * QUERY_ROWS;
        return Math.min(Math.min(end, line + grid), keys(blocks));
    }

    private static int blockStart(Call call, int end) {
        int grid = call.blocks.grid();
        int line = (end - 1) / grid * grid;
        int start = line + (end - 1 - line) / QUERY_ROWS * QUERY_ROWS;
        return Math.max(start, call.blocks.firstToken());
    }

    private void forwardBlock(Call call, int thread, int sequence, int head, int first, int end) {
        int rows = end - first;
        int width = call.headWidth();
        int stride = call.qkv.stride();
        int across = rowStride(end);
        long scores = scratch[thread].reserve(scoreBytes(call) + SUM_BYTES);
        long queries = call.part(call.qkv, 0, sequence, head, first);
        long keys = call.part(call.qkv, 1, sequence, head, 0);
        long values = call.part(call.qkv, 2, sequence, head, 0);
        long out = call.unit(call.y, sequence, first, head);
        product.multiply(
                thread, rows, end, width, false, queries, stride, true, keys, stride, false, scores,
                across);
        long sums = scores + scoreBytes(call);
        exponentials(call, scores, across, first, rows, sums);
        for (int i = 0; i < rows; i++) {
            float sum = Addresses.getFloat(sums + 8L * i);
            float max = Addresses.getFloat(sums + 8L * i + 4);
            float logSumExp = max + (float) StrictMath.log(sum);
            Addresses.setFloat(call.logSumExp(sequence, first + i, head), logSumExp);
        }
        normalise(scores, across, first, rows, end, sums);
        product.multiply(
                thread,
                rows,
                width,
                end,
                false,
                scores,
                across,
                false,
                values,
                stride,
                false,
                out,
                call.y.stride());
    }

    /**
     * Exponentials of the scores that each row sees, less the row's maximum.
     *
     * <p>A softmax in one method is more than the compiler inlines, and where it stops inlining,
     * vectors become objects: hence a block in two sweeps.
     *
     * @param sums receives sum and maximum of each row
     */
    private void exponentials(Call call, long scores, int across, int first, int rows, long sums) {
        float scale = call.scale();
        for (int i = 0; i < rows; i++) {
            long row = scores + (long) i * across * Float.BYTES;
            int padded = softmax.pad(row, first + i + 1);
            float max = softmax.max(row, padded) * scale;
            Addresses.setFloat(sums + 8L * i, softmax.exp(row, padded, scale, max));
            Addresses.setFloat(sums + 8L * i + 4, max);
        }
    }

    /** Divides rows by their sums; zeros up to {@code end}. */
    private void normalise(long scores, int across, int first, int rows, int end, long sums) {
        for (int i = 0; i < rows; i++) {
            long row = scores + (long) i * across * Float.BYTES;
            int n = first + i + 1;
            softmax.scale(row, softmax.padded(n), 1 / Addresses.getFloat(sums + 8L * i));
            Addresses.clear(row + 4L * n, 4L * (end - n));
        }
    }

    private void backwardHead(
            Call call, Tensor dy, Tensor dQkv, int thread, int sequence, int head) {
        int end = call.keys();
        while (end > call.blocks.firstToken()) {
            int first = blockStart(call, end);
            backwardBlock(call, dy, dQkv, thread, sequence, head, first, end);
            end = first;
        }
    }

    private void backwardBlock(
            Call call,
            Tensor dy,
            Tensor dQkv,
            int thread,
            int sequence,
            int head,
            int first,
            int end) {
        long p = scratch[thread].reserve(2 * scoreBytes(call));
        long dp = p + scoreBytes(call);
        backwardScores(call, dy, thread, sequence, head, first, end, p, dp);
        backwardProducts(call, dy, dQkv, thread, sequence, head, first, end, p, dp);
    }

    /** Probabilities {@code p} and the gradient {@code dp} of the scores. */
    private void backwardScores(
            Call call,
            Tensor dy,
            int thread,
            int sequence,
            int head,
            int first,
            int end,
            long p,
            long dp) {
        int rows = end - first;
        int width = call.headWidth();
        int stride = call.qkv.stride();
        int across = rowStride(end);
        long queries = call.part(call.qkv, 0, sequence, head, first);
        long keys = call.part(call.qkv, 1, sequence, head, 0);
        long values = call.part(call.qkv, 2, sequence, head, 0);
        long gradient = call.unit(dy, sequence, first, head);
        product.multiply(
                thread, rows, end, width, false, queries, stride, true, keys, stride, false, p,
                across);
        product.multiply(
                thread,
                rows,
                end,
                width,
                false,
                gradient,
                dy.stride(),
                true,
                values,
                stride,
                false,
                dp,
                across);
        long y = call.unit(call.y, sequence, first, head);
        long yRow = (long) call.y.stride() * Float.BYTES;
        long gradientRow = (long) dy.stride() * Float.BYTES;
        for (int i = 0; i < rows; i++) {
            float shift = Addresses.getFloat(call.logSumExp(sequence, first + i, head));
            float delta = softmax.dot(gradient + i * gradientRow, y + i * yRow, width);
            long at = (long) i * across * Float.BYTES;
            backwardRow(p + at, dp + at, first + i + 1, end, call.scale(), shift, delta);
        }
    }

    private void backwardProducts(
            Call call,
            Tensor dy,
            Tensor dQkv,
            int thread,
            int sequence,
            int head,
            int first,
            int end,
            long p,
            long dp) {
        int rows = end - first;
        int width = call.headWidth();
        int stride = call.qkv.stride();
        int to = dQkv.stride();
        int across = rowStride(end);
        long queries = call.part(call.qkv, 0, sequence, head, first);
        long keys = call.part(call.qkv, 1, sequence, head, 0);
        long gradient = call.unit(dy, sequence, first, head);
        long dQueries = call.part(dQkv, 0, sequence, head, first);
        long dKeys = call.part(dQkv, 1, sequence, head, 0);
        long dValues = call.part(dQkv, 2, sequence, head, 0);
        product.multiply(
                thread, rows, width, end, false, dp, across, false, keys, stride, false, dQueries,
                to);
        product.multiply(
                thread, end, width, rows, true, dp, across, false, queries, stride, true, dKeys,
                to);
        product.multiply(
                thread,
                end,
                width,
                rows,
                true,
                p,
                across,
                false,
                gradient,
                dy.stride(),
                true,
                dValues,
                to);
    }

    /** Probabilities again from scores, then the gradient of the scores in place of {@code dp}. */
    private void backwardRow(
            long p, long dp, int n, int end, float scale, float logSumExp, float delta) {
        int padded = softmax.pad(p, n);
        softmax.exp(p, padded, scale, logSumExp);
        softmax.backward(p, dp, padded, delta, scale);
        Addresses.clear(p + 4L * n, 4L * (end - n));
        Addresses.clear(dp + 4L * n, 4L * (end - n));
    }
}
