package dev.penstock.cuda.cpu;

import dev.penstock.cuda.device.Tensor;
import org.jspecify.annotations.Nullable;

/**
 * Attention of queries to a block of keys that all come before them, whose softmax is merged with
 * that over earlier blocks: what {@link CpuAttention} does below the diagonal, in the same blocks
 * of query rows, one head at a time.
 *
 * <p>Bits do not depend on threads: a head belongs to one of them.
 */
final class CpuEarlierAttention {
    private static final int QUERY_ROWS = AttentionPass.QUERY_ROWS;

    private final AttentionHeads heads;
    private final SoftmaxKernels softmax;

    /**
     * @param heads whose passes add to {@code y} and {@code dq}
     */
    CpuEarlierAttention(AttentionHeads heads, Lanes lanes) {
        this.heads = heads;
        this.softmax = new SoftmaxKernels(lanes);
    }

    /** The gradients of one call, as in Kernels. */
    private record Gradients(Tensor dy, Tensor dq, Tensor dKeyValues) {}

    /**
     * The tensors of one call, as in Kernels.
     *
     * @param gradients null in a forward
     */
    private record Call(
            Tensor q,
            Tensor keyValues,
            Tensor y,
            Tensor logSumExp,
            @Nullable Gradients gradients,
            int heads) {
        int width() {
            return q.columns() / heads;
        }

        int keys() {
            return keyValues.rows();
        }

        float scale() {
            return (float) (1 / Math.sqrt(width()));
        }

        /** Points at a head of rows from this one on. */
        void rows(AttentionPass.Strip strip, Tensor tensor, int row, int head) {
            long element = (long) row * tensor.stride() + (long) head * width();
            strip.set(tensor.address() + Float.BYTES * element, tensor.stride());
        }

        long logSumExp(int row, int head) {
            return logSumExp.address() + 4L * ((long) row * logSumExp.stride() + head);
        }

        /** Points a pass at a head's block of queries from this row on, and at all keys. */
        void open(AttentionPass pass, int head, int first) {
            pass.size(Math.min(QUERY_ROWS, q.rows() - first), keys(), width());
            rows(pass.q, q, first, head);
            rows(pass.k, keyValues, 0, head);
            rows(pass.v, keyValues, 0, heads + head);
            rows(pass.y, y, first, head);
            if (gradients != null) {
                rows(pass.dy, gradients.dy, first, head);
                rows(pass.dq, gradients.dq, first, head);
                rows(pass.dk, gradients.dKeyValues, 0, head);
                rows(pass.dv, gradients.dKeyValues, 0, heads + head);
            }
        }
    }

    /**
     * Scratch of a thread.
     *
     * @param squares of queries and keys: 1 forward, 2 backward
     */
    static long scratchBytes(int squares, int queries, int keys) {
        return queries == 0 || keys == 0 ? 0 : squares * AttentionPass.scoreBytes(keys);
    }

    void forward(Tensor q, Tensor keyValues, Tensor y, Tensor logSumExp, int heads) {
        var call = new Call(q, keyValues, y, logSumExp, null, heads);
        run(
                call,
                1,
                (pass, head) -> {
                    for (int first = 0; first < q.rows(); first += QUERY_ROWS) {
                        forwardBlock(call, pass, head, first);
                    }
                });
    }

    void backward(
            Tensor q,
            Tensor keyValues,
            Tensor y,
            Tensor logSumExp,
            Tensor dy,
            Tensor dq,
            Tensor dKeyValues,
            int heads) {
        var gradients = new Gradients(dy, dq, dKeyValues);
        var call = new Call(q, keyValues, y, logSumExp, gradients, heads);
        run(
                call,
                2,
                (pass, head) -> {
                    int last = (q.rows() - 1) / QUERY_ROWS * QUERY_ROWS;
                    for (int first = last; first >= 0; first -= QUERY_ROWS) {
                        backwardBlock(call, pass, head, first);
                    }
                });
    }

    private void run(Call call, int squares, AttentionHeads.Work work) {
        if (call.q.rows() > 0 && call.keys() > 0) {
            long elements = elements(call.heads, call.q.rows(), call.keys());
            heads.run(call.heads, elements, squares, call.keys(), 0, work);
        }
    }

    /** How much there is to do for the threads. */
    static long elements(int heads, int queries, int keys) {
        return (long) heads * queries * keys;
    }

    /** Returns whether a block has fewer queries than {@code rows}. */
    static boolean hasSmallBlock(int queries, int rows) {
        int last = queries % QUERY_ROWS;
        return last > 0 && last < rows;
    }

    private void forwardBlock(Call call, AttentionPass pass, int head, int first) {
        call.open(pass, head, first);
        pass.scores();
        for (int i = 0; i < pass.rows(); i++) {
            mergeRow(pass, i, call.logSumExp(first + i, head), call.scale());
        }
        pass.values();
    }

    /**
     * Turns scores into probabilities among all keys so far, and what {@code y} holds likewise.
     *
     * @param place address of the row's log of the sum, which is updated
     */
    private void mergeRow(AttentionPass pass, int row, long place, float scale) {
        long scores = pass.p(row);
        int padded = softmax.pad(scores, pass.keys());
        float max = softmax.max(scores, padded) * scale;
        float sum = softmax.exp(scores, padded, scale, max);
        double before = Addresses.getFloat(place);
        double block = max + StrictMath.log(sum);
        double larger = Math.max(before, block);
        double all = larger + StrictMath.log1p(StrictMath.exp(Math.min(before, block) - larger));
        Addresses.setFloat(place, (float) all);
        softmax.scale(scores, pass.keys(), (float) StrictMath.exp(max - all));
        softmax.scale(pass.y.row(row), pass.width(), (float) StrictMath.exp(before - all));
    }

    private void backwardBlock(Call call, AttentionPass pass, int head, int first) {
        call.open(pass, head, first);
        pass.scores();
        pass.gradientOfProbabilities();
        for (int i = 0; i < pass.rows(); i++) {
            float logSumExp = Addresses.getFloat(call.logSumExp(first + i, head));
            backwardRow(pass, i, logSumExp, call.scale());
        }
        pass.gradients();
    }

    /** Probabilities again from scores, then the gradient of the scores in place of {@code dp}. */
    private void backwardRow(AttentionPass pass, int row, float logSumExp, float scale) {
        float delta = softmax.dot(pass.dy.row(row), pass.y.row(row), pass.width());
        int padded = softmax.pad(pass.p(row), pass.keys());
        softmax.exp(pass.p(row), padded, scale, logSumExp);
        softmax.backward(pass.p(row), pass.dp(row), padded, delta, scale);
    }
}
