package dev.penstock.cuda.cpu;

import dev.penstock.cuda.cpu.vector.Addresses;
import dev.penstock.cuda.cpu.vector.Lanes;
import dev.penstock.cuda.cpu.vector.RetentionKernels;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.RetentionShape;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.memory.Scratch;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Retention in its chunkwise form (arXiv 2307.08621, section 2.3) as products of matrices, one head
 * of one sequence at a time. With decay g, f_i the factor of row i (see Kernels), {@code D_ij = f_i
 * g^(i-j)} for j up to i, {@code x_i = f_i g^(i+1)} and {@code z_j = g^(L-1-j)}, over a chunk of L
 * rows, R before it and R' after it:
 *
 * <pre>
 *   P = q k^T . D            y = (q R) x + P v                R' = (k z)^T v + g^L R
 *   dP = dy v^T . D          dq = (dy R^T) x + dP k
 *   dk = (v dR'^T) z + dP^T q          dv = (k dR') z + P^T dy          dR = g^L dR' + (q x)^T dy
 * </pre>
 *
 * <p>dR takes the place of R, which nobody reads any more. Bits depend on the chunks alone: a head
 * of a sequence belongs to one thread.
 */
final class CpuRetention {
    private final WorkerPool pool;
    private final RetentionKernels rows;
    private final Pass[] passes;

    /**
     * @param scratch one per thread
     */
    CpuRetention(WorkerPool pool, MatrixProduct library, Scratch[] scratch, Lanes lanes) {
        this.pool = pool;
        this.rows = new RetentionKernels(lanes);
        this.passes = new Pass[scratch.length];
        for (int thread = 0; thread < passes.length; thread++) {
            passes[thread] = new Pass(library, thread, scratch[thread]);
        }
    }

    /**
     * Scratch of a thread.
     *
     * @param squares of products of queries and keys: 0 for states, 1 forward, 2 backward
     */
    static long scratchBytes(int squares, RetentionShape shape, TokenBlocks blocks) {
        int most = mostRows(blocks);
        return Float.BYTES
                * ((long) squares * most * across(most)
                        + (long) most * across(shape.keySize())
                        + 2L * across(most));
    }

    /** Scratch of the products of a chunk of so few rows that they are padded. */
    static long paddingBytes(int squares, RetentionShape shape, int rows) {
        int n = shape.keySize();
        int m = shape.valueSize();
        if (squares == 0) {
            return 0;
        }
        long forward = Math.max(padded(rows, n), Math.max(padded(m, n), padded(m, rows)));
        return squares == 1
                ? forward
                : Math.max(
                        Math.max(forward, padded(rows, m)),
                        Math.max(padded(n, m), padded(n, rows)));
    }

    private static long padded(int columns, int depth) {
        return RowPadding.bytes(columns, depth, DType.F32);
    }

    /** How much there is to do for the threads. */
    static long elements(RetentionShape shape, TokenBlocks blocks) {
        return (long) blocks.rows()
                * shape.heads()
                * (shape.keySize() + shape.valueSize() + mostRows(blocks));
    }

    private static int mostRows(TokenBlocks blocks) {
        return Math.min(blocks.grid(), blocks.tokens());
    }

    /** Elements from one row of scratch to the next: whole cache lines. */
    private static int across(int columns) {
        return (columns + 15) & -16;
    }

    /** The tensors of one call, as in Kernels; those that an op does not have are any others. */
    private record Call(
            Tensor qkv,
            Tensor states,
            Tensor y,
            Tensor dQkv,
            RetentionShape shape,
            int context,
            TokenBlocks blocks) {
        int chunks() {
            return blocks.blocksPerSequence();
        }

        /** Rows of the unit before a chunk in its sequence. */
        int before(int chunk) {
            return blocks.firstRow(index(chunk));
        }

        int rows(int chunk) {
            return blocks.rowsOf(index(chunk));
        }

        /** Number of a chunk of the first sequence in the order of summation. */
        private int index(int chunk) {
            return (chunks() - 1 - chunk) * blocks.sequences();
        }

        long state(int head, int sequence, int chunk) {
            return at(states, chunk * blocks.sequences() + sequence, head * shape.stateOfHead());
        }

        static long at(Tensor tensor, int row, int column) {
            return tensor.address() + Float.BYTES * ((long) row * tensor.stride() + column);
        }
    }

    /** What a thread is working on: one head's part of one chunk of one sequence. */
    private static final class Pass {
        private final MatrixProduct library;
        private final Product product;
        private final Scratch scratch;
        private long p;
        private long dp;
        private long copy;
        private long powers;
        private long factors;

        int n;
        int m;
        int length;
        int across;
        long q;
        long k;
        long v;
        int stride;
        long y;
        int strideY;
        long dq;
        long dk;
        long dv;
        int dStride;
        long state;
        long after;
        private double decay;
        private double decayOfChunk;

        Pass(MatrixProduct library, int thread, Scratch scratch) {
            this.library = library;
            this.product = new Product(thread);
            this.scratch = scratch;
        }

        void begin(int squares, RetentionShape shape, TokenBlocks blocks) {
            int most = mostRows(blocks);
            long square = (long) Float.BYTES * most * across(most);
            p = scratch.reserve(scratchBytes(squares, shape, blocks));
            dp = p + square;
            copy = p + squares * square;
            powers = copy + (long) Float.BYTES * most * across(shape.keySize());
            factors = powers + (long) Float.BYTES * across(most);
        }

        void open(Call call, int item, int chunk) {
            RetentionShape shape = call.shape();
            int head = item % shape.heads();
            int sequence = item / shape.heads();
            n = shape.keySize();
            m = shape.valueSize();
            length = call.rows(chunk);
            across = across(length);
            int inUnit = call.before(chunk);
            int position = call.blocks().firstToken() + inUnit;
            boolean alone = call.context() == call.blocks().tokens();
            int row = sequence * call.context() + (alone ? inUnit : position);
            int ofKeys = shape.queryColumns() + head * n;
            int ofValues = 2 * shape.queryColumns() + head * m;
            q = Call.at(call.qkv(), row, head * n);
            k = Call.at(call.qkv(), row, ofKeys);
            v = Call.at(call.qkv(), row, ofValues);
            stride = call.qkv().stride();
            y = Call.at(call.y(), sequence * call.blocks().tokens() + inUnit, head * m);
            strideY = call.y().stride();
            dq = Call.at(call.dQkv(), row, head * n);
            dk = Call.at(call.dQkv(), row, ofKeys);
            dv = Call.at(call.dQkv(), row, ofValues);
            dStride = call.dQkv().stride();
            state = call.state(head, sequence, chunk);
            after = call.state(head, sequence, chunk + 1);
            decay = shape.decays().get(head);
            double power = 1;
            double weight = shape.weightOf(head, position);
            for (int i = 0; i < length; i++) {
                Addresses.setFloat(powers + 4L * (length - 1 - i), (float) power);
                power *= decay;
                Addresses.setFloat(factors + 4L * i, (float) (shape.scale() / Math.sqrt(weight)));
                weight = 1 + decay * weight;
            }
            decayOfChunk = power;
        }

        /** {@code f_i}. */
        float factor(int i) {
            return Addresses.getFloat(factors + 4L * i);
        }

        /** {@code g^(L-1-j)}. */
        float toEnd(int j) {
            return Addresses.getFloat(powers + 4L * j);
        }

        /** {@code g^(i-j)} for j from 0 on. */
        long fromRow(int i) {
            return powers + 4L * (length - 1 - i);
        }

        /** {@code g^(i+1)}. */
        float fromStart(int i) {
            return (float) (toEnd(length - 1 - i) * decay);
        }

        float ofChunk() {
            return (float) decayOfChunk;
        }

        /** Address of a row of {@code q k^T}. */
        long p(int row) {
            return p + 4L * row * across;
        }

        long dp(int row) {
            return dp + 4L * row * across;
        }

        /** Address of a row of decayed queries or keys. */
        long copy(int row) {
            return copy + 4L * row * n;
        }

        Product product(int rows, int columns, int depth) {
            return product.of(rows, columns, depth);
        }

        void multiply(Product each) {
            library.multiply(each);
        }
    }

    void states(Tensor qkv, Tensor states, RetentionShape shape, int context, TokenBlocks blocks) {
        var call = new Call(qkv, states, qkv, qkv, shape, context, blocks);
        run(
                call,
                0,
                (pass, item) -> {
                    for (int chunk = 0; chunk < call.chunks(); chunk++) {
                        pass.open(call, item, chunk);
                        stateAfter(pass);
                    }
                });
    }

    void forward(
            Tensor qkv,
            Tensor states,
            Tensor y,
            RetentionShape shape,
            int context,
            TokenBlocks blocks) {
        var call = new Call(qkv, states, y, qkv, shape, context, blocks);
        run(
                call,
                1,
                (pass, item) -> {
                    for (int chunk = 0; chunk < call.chunks(); chunk++) {
                        pass.open(call, item, chunk);
                        forward(pass);
                    }
                });
    }

    void backward(
            Tensor qkv,
            Tensor states,
            Tensor dy,
            Tensor dQkv,
            RetentionShape shape,
            int context,
            TokenBlocks blocks) {
        var call = new Call(qkv, states, dy, dQkv, shape, context, blocks);
        run(
                call,
                2,
                (pass, item) -> {
                    for (int chunk = call.chunks() - 1; chunk >= 0; chunk--) {
                        pass.open(call, item, chunk);
                        backward(pass);
                    }
                });
    }

    void stateGradient(
            Tensor qkv,
            Tensor gradient,
            Tensor dy,
            RetentionShape shape,
            int context,
            TokenBlocks blocks) {
        var call = new Call(qkv, gradient, dy, qkv, shape, context, blocks);
        run(
                call,
                0,
                (pass, item) -> {
                    for (int chunk = call.chunks() - 1; chunk >= 0; chunk--) {
                        pass.open(call, item, chunk);
                        pass.state = call.state(item % shape.heads(), item / shape.heads(), 0);
                        pass.after = pass.state;
                        gradientBefore(pass);
                    }
                });
    }

    /** All chunks of one head of one sequence. */
    @FunctionalInterface
    private interface Work {
        void run(Pass pass, int item);
    }

    private void run(Call call, int squares, Work work) {
        for (Pass pass : passes) {
            pass.begin(squares, call.shape(), call.blocks());
        }
        int items = call.blocks().sequences() * call.shape().heads();
        AtomicInteger next = new AtomicInteger();
        pool.run(
                elements(call.shape(), call.blocks()),
                thread -> {
                    for (int i = next.getAndIncrement(); i < items; i = next.getAndIncrement()) {
                        work.run(passes[thread], i);
                    }
                });
    }

    private void stateAfter(Pass a) {
        for (int j = 0; j < a.length; j++) {
            rows.scale(a.k + 4L * j * a.stride, a.copy(j), a.n, a.toEnd(j));
        }
        rows.scale(a.state, a.after, a.n * a.m, a.ofChunk());
        a.multiply(
                a.product(a.n, a.m, a.length)
                        .aTransposed(a.copy(0), a.n)
                        .b(a.v, a.stride)
                        .addTo(a.after, a.m));
    }

    private void forward(Pass a) {
        scores(a);
        a.multiply(
                a.product(a.length, a.m, a.n).a(a.q, a.stride).b(a.state, a.m).to(a.y, a.strideY));
        for (int i = 0; i < a.length; i++) {
            long y = a.y + 4L * i * a.strideY;
            rows.scale(y, y, a.m, a.factor(i) * a.fromStart(i));
        }
        a.multiply(
                a.product(a.length, a.m, a.length)
                        .a(a.p(0), a.across)
                        .b(a.v, a.stride)
                        .addTo(a.y, a.strideY));
    }

    private void backward(Pass a) {
        scores(a);
        a.multiply(
                a.product(a.length, a.length, a.m)
                        .a(a.y, a.strideY)
                        .bTransposed(a.v, a.stride)
                        .to(a.dp(0), a.across));
        decay(a, a.dp(0));
        a.multiply(
                a.product(a.length, a.n, a.m)
                        .a(a.y, a.strideY)
                        .bTransposed(a.state, a.m)
                        .to(a.dq, a.dStride));
        a.multiply(
                a.product(a.length, a.n, a.m)
                        .a(a.v, a.stride)
                        .bTransposed(a.after, a.m)
                        .to(a.dk, a.dStride));
        a.multiply(
                a.product(a.length, a.m, a.n).a(a.k, a.stride).b(a.after, a.m).to(a.dv, a.dStride));
        for (int i = 0; i < a.length; i++) {
            long row = 4L * i * a.dStride;
            float fromStart = a.factor(i) * a.fromStart(i);
            rows.scale(a.dq + row, a.dq + row, a.n, fromStart);
            rows.scale(a.dk + row, a.dk + row, a.n, a.toEnd(i));
            rows.scale(a.dv + row, a.dv + row, a.m, a.toEnd(i));
        }
        a.multiply(
                a.product(a.length, a.n, a.length)
                        .a(a.dp(0), a.across)
                        .b(a.k, a.stride)
                        .addTo(a.dq, a.dStride));
        a.multiply(
                a.product(a.length, a.n, a.length)
                        .aTransposed(a.dp(0), a.across)
                        .b(a.q, a.stride)
                        .addTo(a.dk, a.dStride));
        a.multiply(
                a.product(a.length, a.m, a.length)
                        .aTransposed(a.p(0), a.across)
                        .b(a.y, a.strideY)
                        .addTo(a.dv, a.dStride));
        gradientBefore(a);
    }

    /** The gradient of the state before a chunk; y is its own. */
    private void gradientBefore(Pass a) {
        for (int i = 0; i < a.length; i++) {
            float fromStart = a.factor(i) * a.fromStart(i);
            rows.scale(a.q + 4L * i * a.stride, a.copy(i), a.n, fromStart);
        }
        rows.scale(a.after, a.state, a.n * a.m, a.ofChunk());
        a.multiply(
                a.product(a.n, a.m, a.length)
                        .aTransposed(a.copy(0), a.n)
                        .b(a.y, a.strideY)
                        .addTo(a.state, a.m));
    }

    /** {@code P = q k^T . D}. */
    private void scores(Pass a) {
        a.multiply(
                a.product(a.length, a.length, a.n)
                        .a(a.q, a.stride)
                        .bTransposed(a.k, a.stride)
                        .to(a.p(0), a.across));
        decay(a, a.p(0));
    }

    /** Multiplies by D, zeros above the diagonal. */
    private void decay(Pass a, long square) {
        for (int i = 0; i < a.length; i++) {
            long row = square + 4L * i * a.across;
            rows.weigh(row, a.fromRow(i), i + 1, a.factor(i));
            Addresses.clear(row + 4L * (i + 1), 4L * (a.length - i - 1));
        }
    }
}
