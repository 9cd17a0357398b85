package dev.penstock.cuda.cpu;

import dev.penstock.cuda.cpu.vector.Addresses;
import dev.penstock.cuda.cpu.vector.Lanes;
import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.EarlierKeys;
import dev.penstock.cuda.device.Tensor;
import org.jspecify.annotations.Nullable;

/**
 * Attention of queries to a block of keys that all come before them, whose softmax is merged with
 * that over earlier blocks: what {@link CpuAttention} does below the diagonal, in the same blocks
 * of query rows, one head at a time.
 *
 * <p>Bits do not depend on threads: a head, and in the backward all heads that share keys, belong
 * to one of them.
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
            EarlierKeys keys) {
        AttentionShape shape() {
            return keys.shape();
        }

        /** First key that a block of queries from this one on needs. */
        int keysFrom(int first) {
            return CpuEarlierAttention.keysFrom(keys, first);
        }

        /** Points at a head of rows from this one on. */
        void rows(AttentionPass.Strip strip, Tensor tensor, int row, int head) {
            long element = (long) row * tensor.stride() + (long) head * shape().headSize();
            strip.set(tensor.address() + Float.BYTES * element, tensor.stride());
        }

        long logSumExp(int row, int head) {
            return logSumExp.address() + 4L * ((long) row * logSumExp.stride() + head);
        }

        /**
         * Points a pass at a head's block of queries from this row on, and at the keys that they
         * see.
         *
         * @return whether they see any
         */
        boolean open(AttentionPass pass, int head, int first) {
            int from = keysFrom(first);
            if (from >= keyValues.rows()) {
                return false;
            }
            int keyHead = shape().keyHeadOf(head);
            int valueHead = shape().keyHeads() + keyHead;
            int rows = Math.min(QUERY_ROWS, q.rows() - first);
            pass.size(rows, keyValues.rows() - from, shape().headSize());
            rows(pass.q, q, first, head);
            rows(pass.k, keyValues, from, keyHead);
            rows(pass.v, keyValues, from, valueHead);
            rows(pass.y, y, first, head);
            if (gradients != null) {
                rows(pass.dy, gradients.dy, first, head);
                rows(pass.dq, gradients.dq, first, head);
                rows(pass.dk, gradients.dKeyValues, from, keyHead);
                rows(pass.dv, gradients.dKeyValues, from, valueHead);
            }
            return true;
        }

        /** How many of the keys of a block that begins at this query one of its rows cannot see. */
        int unseen(AttentionPass pass, int first, int row) {
            return Math.min(pass.keys(), keys.firstKey(first + row) - keysFrom(first));
        }
    }

    /**
     * Scratch of a thread.
     *
     * @param squares of queries and keys: 1 forward, 2 backward
     */
    static long scratchBytes(int squares, EarlierKeys keys, int queries, int count) {
        int most = keysOfBlock(keys, 0, count);
        return queries == 0 || most == 0 ? 0 : squares * AttentionPass.scoreBytes(most);
    }

    private static int keysFrom(EarlierKeys keys, int first) {
        return AttentionPass.keysFrom(keys.firstKey(first));
    }

    /** Keys of a block of queries that begins at this one; the first block has most. */
    private static int keysOfBlock(EarlierKeys keys, int first, int count) {
        return Math.max(0, count - keysFrom(keys, first));
    }

    void forward(Tensor q, Tensor keyValues, Tensor y, Tensor logSumExp, EarlierKeys keys) {
        var call = new Call(q, keyValues, y, logSumExp, null, keys);
        run(
                call,
                1,
                keys.shape().heads(),
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
            EarlierKeys keys) {
        var gradients = new Gradients(dy, dq, dKeyValues);
        var call = new Call(q, keyValues, y, logSumExp, gradients, keys);
        int group = keys.shape().group();
        run(
                call,
                2,
                keys.shape().keyHeads(),
                (pass, keyHead) -> {
                    int last = (q.rows() - 1) / QUERY_ROWS * QUERY_ROWS;
                    for (int first = last; first >= 0; first -= QUERY_ROWS) {
                        for (int i = 0; i < group; i++) {
                            backwardBlock(call, pass, keyHead * group + i, first);
                        }
                    }
                });
    }

    private void run(Call call, int squares, int items, AttentionHeads.Work work) {
        int most = keysOfBlock(call.keys, 0, call.keyValues.rows());
        if (call.q.rows() > 0 && most > 0) {
            long elements = elements(call.keys, call.q.rows(), call.keyValues.rows());
            heads.run(items, elements, squares, most, 0, work);
        }
    }

    /** How much there is to do for the threads. */
    static long elements(EarlierKeys keys, int queries, int count) {
        return (long) keys.shape().heads() * queries * keysOfBlock(keys, 0, count);
    }

    /** Keys of a block with fewer queries than {@code rows}; 0 if there is none. */
    static int keysOfSmallBlock(EarlierKeys keys, int queries, int count, int rows) {
        int last = queries % QUERY_ROWS;
        return last > 0 && last < rows ? keysOfBlock(keys, queries - last, count) : 0;
    }

    private void forwardBlock(Call call, AttentionPass pass, int head, int first) {
        if (!call.open(pass, head, first)) {
            return;
        }
        float scale = (float) call.shape().scale();
        pass.scores();
        for (int i = 0; i < pass.rows(); i++) {
            int unseen = call.unseen(pass, first, i);
            if (unseen < pass.keys()) {
                mergeRow(pass, i, unseen, call.logSumExp(first + i, head), scale);
            }
            Addresses.clear(pass.p(i), 4L * unseen);
        }
        pass.values();
    }

    /**
     * Turns scores into probabilities among all keys so far, and what {@code y} holds likewise.
     *
     * @param unseen keys before the row's window, fewer than all
     * @param place address of the row's log of the sum, which is updated
     */
    private void mergeRow(AttentionPass pass, int row, int unseen, long place, float scale) {
        int start = AttentionPass.keysFrom(unseen);
        long scores = pass.p(row) + 4L * start;
        softmax.hide(scores, unseen - start);
        int padded = softmax.pad(scores, pass.keys() - start);
        float max = softmax.max(scores, padded) * scale;
        float sum = softmax.exp(scores, padded, scale, max);
        double before = Addresses.getFloat(place);
        double block = max + StrictMath.log(sum);
        double larger = Math.max(before, block);
        double all = larger + StrictMath.log1p(StrictMath.exp(Math.min(before, block) - larger));
        Addresses.setFloat(place, (float) all);
        softmax.scale(scores, pass.keys() - start, (float) StrictMath.exp(max - all));
        softmax.scale(pass.y.row(row), pass.width(), (float) StrictMath.exp(before - all));
    }

    private void backwardBlock(Call call, AttentionPass pass, int head, int first) {
        if (!call.open(pass, head, first)) {
            return;
        }
        float scale = (float) call.shape().scale();
        pass.scores();
        pass.gradientOfProbabilities();
        for (int i = 0; i < pass.rows(); i++) {
            int unseen = call.unseen(pass, first, i);
            if (unseen < pass.keys()) {
                float logSumExp = Addresses.getFloat(call.logSumExp(first + i, head));
                backwardRow(pass, i, unseen, logSumExp, scale);
            }
            Addresses.clear(pass.p(i), 4L * unseen);
            Addresses.clear(pass.dp(i), 4L * unseen);
        }
        pass.gradients();
    }

    /** Probabilities again from scores, then the gradient of the scores in place of {@code dp}. */
    private void backwardRow(
            AttentionPass pass, int row, int unseen, float logSumExp, float scale) {
        float delta = softmax.dot(pass.dy.row(row), pass.y.row(row), pass.width());
        int start = AttentionPass.keysFrom(unseen);
        long p = pass.p(row) + 4L * start;
        softmax.hide(p, unseen - start);
        int padded = softmax.pad(p, pass.keys() - start);
        softmax.exp(p, padded, scale, logSumExp);
        softmax.backward(p, pass.dp(row) + 4L * start, padded, delta, scale);
    }
}
