package dev.penstock.cuda.cpu;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.memory.Scratch;
import dev.penstock.cuda.onednn.BFloatMatmul;
import dev.penstock.cuda.onednn.OneDnn;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * BF16 products by oneDNN into F32. Kernels are compiled at the first use of a shape and kept, one
 * set per thread.
 *
 * <p>With the tiles of AMX oneDNN adds up one element the same way whatever other rows and columns
 * a call has, as long as k is a multiple of 32, a row of a tile, or below it. Any other k may take
 * a path that depends on the number of rows. Such a product is taken in two parts: the whole tiles,
 * then what is left of k, added to them.
 */
final class OneDnnBFloatProduct implements MatrixProduct, AutoCloseable {
    private static final int TILE_DEPTH = 32;

    private final OneDnn library;
    private final Worker[] workers;
    private final Product[] parts;

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
        this.parts = new Product[scratch.length];
        Arrays.setAll(parts, Product::new);
        for (int i = 0; i < scratch.length; i++) {
            workers[i] = new Worker(new ArrayList<>(), scratch[i]);
        }
    }

    /** That a thread keeps for a kernel. */
    static long scratchBytes(BFloatMatmul kernel) {
        return Math.max(64, kernel.scratchBytes());
    }

    /** How much of k comes first; the rest is added to it. */
    static int firstDepth(int k) {
        return k > TILE_DEPTH ? k - k % TILE_DEPTH : k;
    }

    @Override
    public void multiply(Product p) {
        int first = firstDepth(p.k);
        if (first == p.k) {
            multiplyWhole(p);
            return;
        }
        Product part = parts[p.thread];
        part.of(p.m, p.n, first)
                .a(p.a, p.strideA, p.transposeA)
                .b(p.b, p.strideB, p.transposeB)
                .to(p.c, p.strideC, p.accumulate);
        multiplyWhole(part);
        long a = (p.transposeA ? (long) first * p.strideA : first) * DType.BF16.bytes();
        long b = (p.transposeB ? first : (long) first * p.strideB) * DType.BF16.bytes();
        part.of(p.m, p.n, p.k - first)
                .a(p.a + a, p.strideA, p.transposeA)
                .b(p.b + b, p.strideB, p.transposeB)
                .addTo(p.c, p.strideC);
        multiplyWhole(part);
    }

    private void multiplyWhole(Product p) {
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
