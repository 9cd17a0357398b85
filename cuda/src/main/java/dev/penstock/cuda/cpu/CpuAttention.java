package dev.penstock.cuda.cpu;

import dev.penstock.cuda.cpu.vector.Addresses;
import dev.penstock.cuda.cpu.vector.Lanes;
import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import org.jspecify.annotations.Nullable;

/**
 * Causal attention in blocks of query rows against the earlier keys that any of them sees: scores
 * of one block and one head at a time, softmax row by row, only the log of the sum kept for the
 * backward, which computes the scores again.
 *
 * <p>Bits do not depend on slices or threads: query blocks are counted from grid lines, which
 * slices end on; a head, and in the backward all heads that share keys, belong to one thread; the
 * backward takes blocks last first, as reversed slices do, and inside a block the heads in turn.
 */
final class CpuAttention {
    /** Sum and maximum of each row. */
    private static final int SUM_BYTES = 2 * Float.BYTES * AttentionPass.QUERY_ROWS;

    private final AttentionHeads heads;
    private final SoftmaxKernels softmax;

    /**
     * @param heads whose passes overwrite {@code y} and {@code dq}
     */
    CpuAttention(AttentionHeads heads, Lanes lanes) {
        this.heads = heads;
        this.softmax = new SoftmaxKernels(lanes);
    }

    /** The gradients of one call: of {@code y}, rows of the unit, and of {@code qkv}. */
    private record Gradients(Tensor dy, Tensor dQkv) {}

    /**
     * The tensors of one call. {@code y}: rows of the unit; the rest as in Kernels.
     *
     * @param gradients null in a forward
     */
    private record Call(
            Tensor qkv,
            Tensor y,
            Tensor logSumExp,
            @Nullable Gradients gradients,
            AttentionShape shape,
            int context,
            TokenBlocks blocks) {
        int keys() {
            return CpuAttention.keys(blocks);
        }

        /** End of the keys that the query at a position sees. */
        int endKey(int position) {
            return shape.endKey(position, keys());
        }

        /** Points at columns of a sequence from one on, and its rows from a token on. */
        void part(AttentionPass.Strip strip, Tensor qkv, int sequence, int token, int column) {
            long row = (long) sequence * context + token;
            strip.set(qkv.address() + Float.BYTES * (row * qkv.stride() + column), qkv.stride());
        }

        /** Points at a head's rows of the unit, from a token of its sequence on. */
        void unit(AttentionPass.Strip strip, Tensor tensor, int item, int token) {
            int column = item % shape.heads() * shape.headSize();
            long element = row(item, token) * tensor.stride() + column;
            strip.set(tensor.address() + Float.BYTES * element, tensor.stride());
        }

        long logSumExp(int item, int token) {
            long element = row(item, token) * logSumExp.stride() + item % shape.heads();
            return logSumExp.address() + Float.BYTES * element;
        }

        private long row(int item, int token) {
            return (long) (item / shape.heads()) * blocks.tokens() + token - blocks.firstToken();
        }

        /**
         * Points a pass at the queries from a token up to another, and the keys that they see.
         *
         * @param item head {@code item % heads} of sequence {@code item / heads}
         */
        void open(AttentionPass pass, int item, int first, int end) {
            int sequence = item / shape.heads();
            int head = item % shape.heads();
            int from = keysFrom(shape, first);
            int q = head * shape.headSize();
            int k = shape.queryColumns() + shape.keyHeadOf(head) * shape.headSize();
            int v = k + shape.keyColumns();
            pass.size(end - first, shape.endKey(end - 1, keys()) - from, shape.headSize());
            part(pass.q, qkv, sequence, first, q);
            part(pass.k, qkv, sequence, from, k);
            part(pass.v, qkv, sequence, from, v);
            unit(pass.y, y, item, first);
            if (gradients != null) {
                unit(pass.dy, gradients.dy, item, first);
                part(pass.dq, gradients.dQkv, sequence, first, q);
                part(pass.dk, gradients.dQkv, sequence, from, k);
                part(pass.dv, gradients.dQkv, sequence, from, v);
            }
        }
    }

    void forward(
            Tensor qkv,
            Tensor y,
            Tensor logSumExp,
            AttentionShape shape,
            int context,
            TokenBlocks blocks) {
        var call = new Call(qkv, y, logSumExp, null, shape, context, blocks);
        int items = blocks.sequences() * shape.heads();
        run(call, 1, items, (pass, item) -> forwardHead(call, pass, item));
    }

    void backward(
            Tensor qkv,
            Tensor y,
            Tensor logSumExp,
            Tensor dy,
            Tensor dQkv,
            AttentionShape shape,
            int context,
            TokenBlocks blocks) {
        var call = new Call(qkv, y, logSumExp, new Gradients(dy, dQkv), shape, context, blocks);
        int items = blocks.sequences() * shape.keyHeads();
        run(call, 2, items, (pass, item) -> backwardHeads(call, pass, item));
    }

    private void run(Call call, int squares, int items, AttentionHeads.Work work) {
        heads.run(
                items,
                elements(call.shape, call.blocks),
                squares,
                mostKeys(call.shape, call.blocks),
                SUM_BYTES,
                work);
    }

    /** First key of a block of queries that begins at a position. */
    private static int keysFrom(AttentionShape shape, int first) {
        return AttentionPass.keysFrom(shape.firstKey(first));
    }

    /**
     * Scratch of a thread.
     *
     * @param squares of queries and keys: 1 forward, 2 backward
     */
    static long scratchBytes(int squares, AttentionShape shape, TokenBlocks blocks) {
        return squares * AttentionPass.scoreBytes(mostKeys(shape, blocks)) + SUM_BYTES;
    }

    private static int mostKeys(AttentionShape shape, TokenBlocks blocks) {
        return keysOfSmallBlock(shape, blocks, Integer.MAX_VALUE);
    }

    /** Most keys of a block with fewer queries than {@code rows}; 0 if there is none. */
    static int keysOfSmallBlock(AttentionShape shape, TokenBlocks blocks, int rows) {
        int most = 0;
        int first = blocks.firstToken();
        while (first < keys(blocks)) {
            int end = blockEnd(blocks, first);
            int keys = shape.endKey(end - 1, keys(blocks)) - keysFrom(shape, first);
            most = end - first < rows ? Math.max(most, keys) : most;
            first = end;
        }
        return most;
    }

    /** End of a slice in its sequence: no key lies beyond. */
    private static int keys(TokenBlocks blocks) {
        return blocks.firstToken() + blocks.tokens();
    }

    /** How much there is to do for the threads. */
    static long elements(AttentionShape shape, TokenBlocks blocks) {
        return (long) shape.heads() * blocks.rows() * mostKeys(shape, blocks);
    }

    private void forwardHead(Call call, AttentionPass pass, int item) {
        int first = call.blocks.firstToken();
        while (first < call.keys()) {
            int end = blockEnd(call.blocks, first);
            forwardBlock(call, pass, item, first, end);
            first = end;
        }
    }

    /** Blocks end at grid lines and at multiples of the block size counted from them. */
    private static int blockEnd(TokenBlocks blocks, int first) {
        int grid = blocks.grid();
        int line = first / grid * grid;
        int end = line + ((first - line) / AttentionPass.QUERY_ROWS + 1) * AttentionPass.QUERY_ROWS;
        return Math.min(Math.min(end, line + grid), keys(blocks));
    }

    private static int blockStart(Call call, int end) {
        int grid = call.blocks.grid();
        int line = (end - 1) / grid * grid;
        int start = line + (end - 1 - line) / AttentionPass.QUERY_ROWS * AttentionPass.QUERY_ROWS;
        return Math.max(start, call.blocks.firstToken());
    }

    private void forwardBlock(Call call, AttentionPass pass, int item, int first, int end) {
        call.open(pass, item, first, end);
        pass.scores();
        exponentials(pass, call, first);
        long sums = pass.extra();
        for (int i = 0; i < pass.rows(); i++) {
            float sum = Addresses.getFloat(sums + 8L * i);
            float max = Addresses.getFloat(sums + 8L * i + 4);
            float logSumExp = max + (float) StrictMath.log(sum);
            Addresses.setFloat(call.logSumExp(item, first + i), logSumExp);
        }
        normalise(pass, call, first);
        pass.values();
    }

    /**
     * Exponentials of the scores that each row sees, less the row's maximum. Leaves the sum and the
     * maximum of each row behind the scores.
     *
     * <p>A softmax in one method is more than the compiler inlines, and where it stops inlining,
     * vectors become objects: hence a block in two sweeps.
     */
    private void exponentials(AttentionPass pass, Call call, int first) {
        AttentionShape shape = call.shape;
        float scale = (float) shape.scale();
        int from = keysFrom(shape, first);
        long sums = pass.extra();
        for (int i = 0; i < pass.rows(); i++) {
            int unseen = shape.firstKey(first + i) - from;
            int start = AttentionPass.keysFrom(unseen);
            long row = pass.p(i) + 4L * start;
            softmax.hide(row, unseen - start);
            int padded = softmax.pad(row, call.endKey(first + i) - from - start);
            float max = softmax.max(row, padded) * scale;
            Addresses.setFloat(sums + 8L * i, softmax.exp(row, padded, scale, max));
            Addresses.setFloat(sums + 8L * i + 4, max);
        }
    }

    /** Divides rows by their sums; writes zeros where a row sees no key. */
    private void normalise(AttentionPass pass, Call call, int first) {
        AttentionShape shape = call.shape;
        int from = keysFrom(shape, first);
        long sums = pass.extra();
        for (int i = 0; i < pass.rows(); i++) {
            int unseen = shape.firstKey(first + i) - from;
            int start = AttentionPass.keysFrom(unseen);
            int n = call.endKey(first + i) - from;
            long row = pass.p(i) + 4L * start;
            softmax.scale(row, softmax.padded(n - start), 1 / Addresses.getFloat(sums + 8L * i));
            clearUnseen(pass.p(i), unseen, n, pass.keys());
        }
    }

    /** Leaves the elements from {@code first} to {@code end} alone. */
    private static void clearUnseen(long row, int first, int end, int n) {
        Addresses.clear(row, 4L * first);
        Addresses.clear(row + 4L * end, 4L * (n - end));
    }

    /**
     * All heads of queries that share keys.
     *
     * @param item key head {@code item % keyHeads} of sequence {@code item / keyHeads}
     */
    private void backwardHeads(Call call, AttentionPass pass, int item) {
        int group = call.shape.group();
        int end = call.keys();
        while (end > call.blocks.firstToken()) {
            int first = blockStart(call, end);
            for (int each = item * group; each < (item + 1) * group; each++) {
                backwardBlock(call, pass, each, first, end);
            }
            end = first;
        }
    }

    private void backwardBlock(Call call, AttentionPass pass, int item, int first, int end) {
        call.open(pass, item, first, end);
        AttentionShape shape = call.shape;
        int from = keysFrom(shape, first);
        float scale = (float) shape.scale();
        pass.scores();
        pass.gradientOfProbabilities();
        for (int i = 0; i < pass.rows(); i++) {
            float shift = Addresses.getFloat(call.logSumExp(item, first + i));
            float delta = softmax.dot(pass.dy.row(i), pass.y.row(i), pass.width());
            int unseen = shape.firstKey(first + i) - from;
            backwardRow(pass, i, unseen, call.endKey(first + i) - from, scale, shift, delta);
        }
        pass.gradients();
    }

    /**
     * Probabilities again from scores, then the gradient of the scores in place of {@code dp}.
     *
     * @param unseen keys before the row's window
     * @param n end of the keys that the row sees
     */
    private void backwardRow(
            AttentionPass pass,
            int row,
            int unseen,
            int n,
            float scale,
            float logSumExp,
            float delta) {
        int start = AttentionPass.keysFrom(unseen);
        long p = pass.p(row) + 4L * start;
        long dp = pass.dp(row) + 4L * start;
        softmax.hide(p, unseen - start);
        int padded = softmax.pad(p, n - start);
        softmax.exp(p, padded, scale, logSumExp);
        softmax.backward(p, dp, padded, delta, scale);
        clearUnseen(pass.p(row), unseen, n, pass.keys());
        clearUnseen(pass.dp(row), unseen, n, pass.keys());
    }
}
