package dev.penstock.cuda.cpu;

import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.memory.Scratch;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Attention of queries to a block of keys that all come before them, whose softmax is merged with
 * that over earlier blocks: what {@link CpuAttention} does below the diagonal, in the same blocks
 * of query rows, one head at a time.
 *
 * <p>Bits do not depend on threads: a head belongs to one of them.
 */
final class CpuEarlierAttention {
    private static final int QUERY_ROWS = 64;

    private final WorkerPool pool;
    private final MatrixProduct product;
    private final SoftmaxKernels softmax;
    private final Scratch[] scratch;

    CpuEarlierAttention(
            WorkerPool pool, MatrixProduct product, Lanes lanes, Scratch[] scratchOfThreads) {
        this.pool = pool;
        this.product = product;
        this.softmax = new SoftmaxKernels(lanes);
        this.scratch = scratchOfThreads;
    }

    /** The tensors of one call, as in Kernels. */
    private record Call(Tensor q, Tensor keyValues, Tensor y, Tensor logSumExp, int heads) {
        int width() {
            return q.columns() / heads;
        }

        int keys() {
            return keyValues.rows();
        }

        float scale() {
            return (float) (1 / Math.sqrt(width()));
        }

        long keysOf(Tensor keyValues, int head) {
            return keyValues.address() + 4L * head * width();
        }

        long valuesOf(Tensor keyValues, int head) {
            return keysOf(keyValues, heads + head);
        }

        /** One head of rows from this one on. */
        long of(Tensor tensor, int row, int head) {
            return tensor.address() + 4L * ((long) row * tensor.stride() + head * width());
        }

        long logSumExp(int row, int head) {
            return logSumExp.address() + 4L * ((long) row * logSumExp.stride() + head);
        }

        /** Elements from one row of scores to the next: whole cache lines. */
        int across() {
            return CpuEarlierAttention.across(keys());
        }

        long scoreBytes() {
            return scratchBytes(1, q.rows(), keys());
        }
    }

    private static int across(int keys) {
        return (keys + 15) & -16;
    }

    /**
     * Scratch of a thread.
     *
     * @param squares of queries and keys: 1 forward, 2 backward
     */
    static long scratchBytes(int squares, int queries, int keys) {
        return queries == 0 || keys == 0 ? 0 : squares * 4L * QUERY_ROWS * across(keys);
    }

    void forward(Tensor q, Tensor keyValues, Tensor y, Tensor logSumExp, int heads) {
        Call call = new Call(q, keyValues, y, logSumExp, heads);
        eachHead(
                call,
                1,
                (thread, head) -> {
                    for (int first = 0; first < q.rows(); first += QUERY_ROWS) {
                        int rows = Math.min(QUERY_ROWS, q.rows() - first);
                        forwardBlock(call, thread, head, first, rows);
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
        Call call = new Call(q, keyValues, y, logSumExp, heads);
        eachHead(
                call,
                2,
                (thread, head) -> {
                    int last = (q.rows() - 1) / QUERY_ROWS * QUERY_ROWS;
                    for (int first = last; first >= 0; first -= QUERY_ROWS) {
                        int rows = Math.min(QUERY_ROWS, q.rows() - first);
                        backwardBlock(call, dy, dq, dKeyValues, thread, head, first, rows);
                    }
                });
    }

    /** How much there is to do for the threads. */
    static long elements(int heads, int queries, int keys) {
        return (long) heads * queries * keys;
    }

    /** Whether a block has fewer queries than {@code rows}. */
    static boolean hasSmallBlock(int queries, int rows) {
        int last = queries % QUERY_ROWS;
        return last > 0 && last < rows;
    }

    @FunctionalInterface
    private interface HeadWork {
        void run(int thread, int head);
    }

    private void eachHead(Call call, int squares, HeadWork work) {
        if (call.q.rows() == 0 || call.keys() == 0) {
            return;
        }
        for (Scratch s : scratch) {
            s.reserve(scratchBytes(squares, call.q.rows(), call.keys()));
        }
        AtomicInteger next = new AtomicInteger();
        pool.run(
                elements(call.heads, call.q.rows(), call.keys()),
                thread -> {
                    for (int i = next.getAndIncrement();
                            i < call.heads;
                            i = next.getAndIncrement()) {
                        work.run(thread, i);
                    }
                });
    }

    /** {@code p = queries keys^T}, for all rows of the block and all keys. */
    private void scores(Call call, int thread, int head, int first, int rows, long p) {
        product.multiply(
                thread,
                rows,
                call.keys(),
                call.width(),
                false,
                call.of(call.q, first, head),
                call.q.stride(),
                true,
                call.keysOf(call.keyValues, head),
                call.keyValues.stride(),
                false,
                p,
                call.across());
    }

    private void forwardBlock(Call call, int thread, int head, int first, int rows) {
        long p = scratch[thread].reserve(call.scoreBytes());
        scores(call, thread, head, first, rows, p);
        for (int i = 0; i < rows; i++) {
            mergeRow(call, head, first + i, p + 4L * i * call.across());
        }
        product.multiply(
                thread,
                rows,
                call.width(),
                call.keys(),
                false,
                p,
                call.across(),
                false,
                call.valuesOf(call.keyValues, head),
                call.keyValues.stride(),
                true,
                call.of(call.y, first, head),
                call.y.stride());
    }

    /** Scores become probabilities among all keys so far, and so does what {@code y} holds. */
    private void mergeRow(Call call, int head, int row, long scores) {
        long place = call.logSumExp(row, head);
        int padded = softmax.pad(scores, call.keys());
        float max = softmax.max(scores, padded) * call.scale();
        float sum = softmax.exp(scores, padded, call.scale(), max);
        double before = Addresses.getFloat(place);
        double block = max + StrictMath.log(sum);
        double larger = Math.max(before, block);
        double all = larger + StrictMath.log1p(StrictMath.exp(Math.min(before, block) - larger));
        Addresses.setFloat(place, (float) all);
        softmax.scale(scores, call.keys(), (float) StrictMath.exp(max - all));
        softmax.scale(
                call.of(call.y, row, head), call.width(), (float) StrictMath.exp(before - all));
    }

    private void backwardBlock(
            Call call,
            Tensor dy,
            Tensor dq,
            Tensor dKeyValues,
            int thread,
            int head,
            int first,
            int rows) {
        long p = scratch[thread].reserve(2 * call.scoreBytes());
        long dp = p + call.scoreBytes();
        scores(call, thread, head, first, rows, p);
        product.multiply(
                thread,
                rows,
                call.keys(),
                call.width(),
                false,
                call.of(dy, first, head),
                dy.stride(),
                true,
                call.valuesOf(call.keyValues, head),
                call.keyValues.stride(),
                false,
                dp,
                call.across());
        for (int i = 0; i < rows; i++) {
            long at = 4L * i * call.across();
            backwardRow(call, dy, head, first + i, p + at, dp + at);
        }
        backwardProducts(call, dy, dq, dKeyValues, thread, head, first, rows, p, dp);
    }

    /** Probabilities again from scores, then the gradient of the scores in place of {@code dp}. */
    private void backwardRow(Call call, Tensor dy, int head, int row, long p, long dp) {
        float delta = softmax.dot(call.of(dy, row, head), call.of(call.y, row, head), call.width());
        int padded = softmax.pad(p, call.keys());
        softmax.exp(p, padded, call.scale(), Addresses.getFloat(call.logSumExp(row, head)));
        softmax.backward(p, dp, padded, delta, call.scale());
    }

    private void backwardProducts(
            Call call,
            Tensor dy,
            Tensor dq,
            Tensor dKeyValues,
            int thread,
            int head,
            int first,
            int rows,
            long p,
            long dp) {
        int width = call.width();
        int keys = call.keys();
        int across = call.across();
        product.multiply(
                thread,
                rows,
                width,
                keys,
                false,
                dp,
                across,
                false,
                call.keysOf(call.keyValues, head),
                call.keyValues.stride(),
                true,
                call.of(dq, first, head),
                dq.stride());
        product.multiply(
                thread,
                keys,
                width,
                rows,
                true,
                dp,
                across,
                false,
                call.of(call.q, first, head),
                call.q.stride(),
                true,
                call.keysOf(dKeyValues, head),
                dKeyValues.stride());
        product.multiply(
                thread,
                keys,
                width,
                rows,
                true,
                p,
                across,
                false,
                call.of(dy, first, head),
                dy.stride(),
                true,
                call.valuesOf(dKeyValues, head),
                dKeyValues.stride());
    }
}
