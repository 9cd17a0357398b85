package dev.penstock.cuda.cpu;

import dev.penstock.cuda.onednn.BFloatMatmul;
import dev.penstock.cuda.onednn.OneDnn;
import java.util.HashMap;
import java.util.Map;

/**
 * BF16 products by oneDNN into F32. Kernels are compiled at the first use of a shape and kept, one
 * set per thread.
 */
final class OneDnnBFloatProduct implements MatrixProduct, AutoCloseable {
    private final OneDnn library;
    private final Worker[] workers;

    /** What a thread keeps. */
    private record Worker(Map<BFloatMatmul.Shape, BFloatMatmul> kernels, Scratch scratch) {}

    /**
     * @param scratch one per thread
     */
    OneDnnBFloatProduct(OneDnn library, Scratch[] scratch) {
        this.library = library;
        this.workers = new Worker[scratch.length];
        for (int i = 0; i < scratch.length; i++) {
            workers[i] = new Worker(new HashMap<>(), scratch[i]);
        }
    }

    @Override
    public void multiply(
            int thread, int m, int n, int k, Operand a, Operand b, Operand c, boolean accumulate) {
        var shape =
                new BFloatMatmul.Shape(
                        m,
                        n,
                        k,
                        a.transposed(),
                        a.stride(),
                        b.transposed(),
                        b.stride(),
                        c.stride(),
                        accumulate);
        Worker worker = workers[thread];
        BFloatMatmul kernel =
                worker.kernels.computeIfAbsent(shape, s -> new BFloatMatmul(library, s));
        long scratch = worker.scratch.reserve(Math.max(64, kernel.scratchBytes()));
        kernel.multiply(a.address(), b.address(), c.address(), scratch);
    }

    @Override
    public void close() {
        for (Worker worker : workers) {
            worker.kernels.values().forEach(BFloatMatmul::close);
        }
    }
}
