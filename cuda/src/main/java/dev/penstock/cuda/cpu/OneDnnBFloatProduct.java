package dev.penstock.cuda.cpu;

import dev.penstock.cuda.memory.Scratch;
import dev.penstock.cuda.onednn.BFloatMatmul;
import dev.penstock.cuda.onednn.OneDnn;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * BF16 products by oneDNN into F32. Kernels are compiled at the first use of a shape and kept, one
 * set per thread.
 */
final class OneDnnBFloatProduct implements MatrixProduct, AutoCloseable {
    private final OneDnn library;
    private final Worker[] workers;

    /** What a thread keeps. */
    private record Worker(List<BFloatMatmul> kernels, Scratch scratch) {
        /** A few dozen shapes at most: looking through them needs no key made for each call. */
        @Nullable BFloatMatmul find(Product p) {
            for (int i = 0; i < kernels.size(); i++) {
                BFloatMatmul.Shape s = kernels.get(i).shape();
                if (s.m() == p.m
                        && s.n() == p.n
                        && s.k() == p.k
                        && s.transposeA() == p.transposeA
                        && s.strideA() == p.strideA
                        && s.transposeB() == p.transposeB
                        && s.strideB() == p.strideB
                        && s.strideC() == p.strideC
                        && s.accumulate() == p.accumulate) {
                    return kernels.get(i);
                }
            }
            return null;
        }

        BFloatMatmul compile(OneDnn library, BFloatMatmul.Shape shape) {
            BFloatMatmul kernel = new BFloatMatmul(library, shape);
            kernels.add(kernel);
            return kernel;
        }
    }

    /**
     * @param scratch one per thread
     */
    OneDnnBFloatProduct(OneDnn library, Scratch[] scratch) {
        this.library = library;
        this.workers = new Worker[scratch.length];
        for (int i = 0; i < scratch.length; i++) {
            workers[i] = new Worker(new ArrayList<>(), scratch[i]);
        }
    }

    /** That a thread keeps for a kernel. */
    static long scratchBytes(BFloatMatmul kernel) {
        return Math.max(64, kernel.scratchBytes());
    }

    @Override
    public void multiply(Product p) {
        Worker worker = workers[p.thread];
        BFloatMatmul kernel = worker.find(p);
        if (kernel == null) {
            kernel =
                    worker.compile(
                            library,
                            new BFloatMatmul.Shape(
                                    p.m,
                                    p.n,
                                    p.k,
                                    p.transposeA,
                                    p.strideA,
                                    p.transposeB,
                                    p.strideB,
                                    p.strideC,
                                    p.accumulate));
        }
        long scratch = worker.scratch.reserve(scratchBytes(kernel));
        kernel.multiply(p.a, p.b, p.c, scratch);
    }

    @Override
    public void close() {
        for (Worker worker : workers) {
            worker.kernels.forEach(BFloatMatmul::close);
        }
    }
}
