package dev.penstock.cuda.cpu;

import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import org.jspecify.annotations.Nullable;

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
            int heads,
            int context,
            TokenBlocks blocks) {
        int headWidth() {
            return y.columns() / heads;
        }

        float scale() {
            return (float) (1 / Math.sqrt(headWidth()));
        }

        int keys() {
            return CpuAttention.keys(blocks);
        }

        /** Points at queries, keys or values (part 0, 1, 2) of a head, from a token on. */
        void part(AttentionPass.Strip strip, Tensor qkv, int part, int item, int token) {
            long row = (long) (item / heads) * context + token;
            int column = part * y.columns() + item % heads * headWidth();
            strip.set(qkv.address() + Float.BYTES * (row * qkv.stride() + column), qkv.stride());
        }

        /** Points at a head's rows of the unit, from a token of its sequence on. */
        void unit(AttentionPass.Strip strip, Tensor tensor, int item, int token) {
            int column = item % heads * headWidth();
            long element = row(item, token) * tensor.stride() + column;
            strip.set(tensor.address() + Float.BYTES * element, tensor.stride());
        }

        long logSumExp(int item, int token) {
            long element = row(item, token) * logSumExp.stride() + item % heads;
            return logSumExp.address() + Float.BYTES * element;
        }

        private long row(int item, int token) {
            return (long) (item / heads) * blocks.tokens() + token - blocks.firstToken();
        }

        /** Points a pass at the queries from a token up to another, and all keys before that. */
        void open(AttentionPass pass, int item, int first, int end) {
            pass.size(end - first, end, headWidth());
            part(pass.q, qkv, 0, item, first);
            part(pass.k, qkv, 1, item, 0);
            part(pass.v, qkv, 2, item, 0);
            unit(pass.y, y, item, first);
            if (gradients != null) {
                unit(pass.dy, gradients.dy, item, first);
                part(pass.dq, gradients.dQkv, 0, item, first);
                part(pass.dk, gradients.dQkv, 1, item, 0);
                part(pass.dv, gradients.dQkv, 2, item, 0);
            }
        }
    }

    void forward(
            Tensor qkv, Tensor y, Tensor logSumExp, int heads, int context, TokenBlocks blocks) {
        var call = new Call(qkv, y, logSumExp, null, heads, context, blocks);
        run(call, 1, (pass, item) -> forwardHead(call, pass, item));
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
        var call = new Call(qkv, y, logSumExp, new Gradients(dy, dQkv), heads, context, blocks);
        run(call, 2, (pass, item) -> backwardHead(call, pass, item));
    }

    /** Item i is head {@code i % heads} of sequence {@code i / heads}. */
    private void run(Call call, int squares, AttentionHeads.Work work) {
        heads.run(
                call.blocks.sequences() * call.heads,
                elements(call.heads, call.blocks),
                squares,
                call.keys(),
                SUM_BYTES,
                work);
    }

    /**
     * Scratch of a thread.
     *
     * @param squares of queries and keys: 1 forward, 2 backward
     */
    static long scratchBytes(int squares, TokenBlocks blocks) {
        return squares * AttentionPass.scoreBytes(keys(blocks)) + SUM_BYTES;
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
        exponentials(pass, first, call.scale());
        long sums = pass.extra();
        for (int i = 0; i < pass.rows(); i++) {
            float sum = Addresses.getFloat(sums + 8L * i);
            float max = Addresses.getFloat(sums + 8L * i + 4);
            float logSumExp = max + (float) StrictMath.log(sum);
            Addresses.setFloat(call.logSumExp(item, first + i), logSumExp);
        }
        normalise(pass, first);
        pass.values();
    }

    /**
     * Exponentials of the scores that each row sees, less the row's maximum. Leaves the sum and the
     * maximum of each row behind the scores.
     *
     * <p>A softmax in one method is more than the compiler inlines, and where it stops inlining,
     * vectors become objects: hence a block in two sweeps.
     */
    private void exponentials(AttentionPass pass, int first, float scale) {
        long sums = pass.extra();
        for (int i = 0; i < pass.rows(); i++) {
            long row = pass.p(i);
            int padded = softmax.pad(row, first + i + 1);
            float max = softmax.max(row, padded) * scale;
            Addresses.setFloat(sums + 8L * i, softmax.exp(row, padded, scale, max));
            Addresses.setFloat(sums + 8L * i + 4, max);
        }
    }

    /** Divides rows by their sums; writes zeros where a row sees no key. */
    private void normalise(AttentionPass pass, int first) {
        long sums = pass.extra();
        for (int i = 0; i < pass.rows(); i++) {
            long row = pass.p(i);
            int n = first + i + 1;
            softmax.scale(row, softmax.padded(n), 1 / Addresses.getFloat(sums + 8L * i));
            Addresses.clear(row + 4L * n, 4L * (pass.keys() - n));
        }
    }

    private void backwardHead(Call call, AttentionPass pass, int item) {
        int end = call.keys();
        while (end > call.blocks.firstToken()) {
            int first = blockStart(call, end);
            backwardBlock(call, pass, item, first, end);
            end = first;
        }
    }

    private void backwardBlock(Call call, AttentionPass pass, int item, int first, int end) {
        call.open(pass, item, first, end);
        pass.scores();
        pass.gradientOfProbabilities();
        for (int i = 0; i < pass.rows(); i++) {
            float shift = Addresses.getFloat(call.logSumExp(item, first + i));
            float delta = softmax.dot(pass.dy.row(i), pass.y.row(i), pass.width());
            backwardRow(pass, i, first + i + 1, call.scale(), shift, delta);
        }
        pass.gradients();
    }

    /** Probabilities again from scores, then the gradient of the scores in place of {@code dp}. */
    private void backwardRow(
            AttentionPass pass, int row, int n, float scale, float logSumExp, float delta) {
        long p = pass.p(row);
        long dp = pass.dp(row);
        int padded = softmax.pad(p, n);
        softmax.exp(p, padded, scale, logSumExp);
        softmax.backward(p, dp, padded, delta, scale);
        Addresses.clear(p + 4L * n, 4L * (pass.keys() - n));
        Addresses.clear(dp + 4L * n, 4L * (pass.keys() - n));
    }
}
