package dev.penstock.cuda.cpu;

import dev.penstock.cuda.cpu.vector.CodecKernels;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.memory.Scratch;

/** Converts one factor of a product in BF16 or F16 into scratch, by all threads. */
final class FactorConverter {
    /** Rows start on cache lines. */
    private static final int STRIDE_QUANTUM = 32;

    private final WorkerPool pool;
    private final BFloat16Kernels kernels;
    private final CodecKernels halves;
    private final Scratch scratch;

    FactorConverter(
            WorkerPool pool, BFloat16Kernels kernels, CodecKernels halves, Scratch scratch) {
        this.pool = pool;
        this.kernels = kernels;
        this.halves = halves;
        this.scratch = scratch;
    }

    /** An F32 tensor as BF16. */
    Operand toBFloats(Tensor from, boolean transposed) {
        Operand to = reserve(from, transposed, DType.BF16.bytes());
        long address = from.address();
        eachRow(
                from,
                i -> kernels.narrow(address + rowBytes(from, i), to.rowAddress(i), from.columns()));
        return to;
    }

    /** An F32 tensor rounded, or a BF16 tensor widened, to F32. */
    Operand toRoundedFloats(Tensor from, boolean transposed) {
        Operand to = reserve(from, transposed, DType.F32.bytes());
        long address = from.address();
        if (from.type() == DType.BF16) {
            eachRow(
                    from,
                    i ->
                            kernels.widen(
                                    address + rowBytes(from, i), to.rowAddress(i), from.columns()));
        } else {
            eachRow(
                    from,
                    i ->
                            kernels.round(
                                    address + rowBytes(from, i), to.rowAddress(i), from.columns()));
        }
        return to;
    }

    /** An F32 tensor rounded to F16, or an F16 tensor, widened to F32. */
    Operand toRoundedHalves(Tensor from, boolean transposed) {
        Operand to = reserve(from, transposed, DType.F32.bytes());
        long address = from.address();
        int n = from.columns();
        if (from.type() == DType.F16) {
            eachRow(from, i -> halves.fromHalves(address + rowBytes(from, i), to.rowAddress(i), n));
            return to;
        }
        eachRow(
                from,
                i -> {
                    long row = to.rowAddress(i);
                    long narrow = row + 2L * n; // what is widened is never behind what is read next
                    halves.toHalves(address + rowBytes(from, i), narrow, n);
                    halves.fromHalves(narrow, row, n);
                });
        return to;
    }

    private Operand reserve(Tensor from, boolean transposed, int bytes) {
        long address = scratch.reserve(bytes(from, bytes));
        return new Operand(address, stride(from.columns()), transposed, bytes);
    }

    /** Elements from one converted row to the next. */
    static int stride(int columns) {
        return (columns + STRIDE_QUANTUM - 1) & -STRIDE_QUANTUM;
    }

    /** Scratch for a factor. */
    static long bytes(Tensor from, int elementBytes) {
        return Math.max(64, (long) from.rows() * stride(from.columns()) * elementBytes);
    }

    private static long rowBytes(Tensor tensor, int row) {
        return (long) row * tensor.stride() * tensor.type().bytes();
    }

    @FunctionalInterface
    private interface RowWork {
        void run(int row);
    }

    private void eachRow(Tensor tensor, RowWork work) {
        int threads = pool.threads();
        pool.run(
                tensor.elements(),
                thread -> {
                    int end = Share.start(tensor.rows(), 1, thread + 1, threads);
                    for (int i = Share.start(tensor.rows(), 1, thread, threads); i < end; i++) {
                        work.run(i);
                    }
                });
    }
}
