package dev.penstock.cuda.cpu;

import static java.util.Objects.requireNonNull;

import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.CountedKernels;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.EarlierKeys;
import dev.penstock.cuda.device.RetentionShape;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.kernels.SilentKernels;
import dev.penstock.cuda.onednn.BFloatMatmul;
import dev.penstock.cuda.onednn.OneDnn;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What the kernels of a CPU device hold for themselves: factors of products in BF16, widened blocks
 * of I8 factors, rows of small products with their padding, a library's own scratch, scores of
 * attention. Heads of attention are taken by whichever thread is free: then every thread is counted
 * as if it had taken all.
 */
public final class CpuScratch extends SilentKernels {
    private final int threads;

    /** That multiplies; null where our own code does, which takes no device memory. */
    private final @Nullable OneDnn library;

    private final boolean multipliesBFloats;

    /** Shared with {@link #anew}: to ask takes as long as to compile a kernel. */
    private final Map<BFloatMatmul.Shape, Long> ofShapes;

    private final long[] padding;
    private final long[] bfloatPadding;
    private final long[] products;
    private final long[] widened;
    private long left;
    private long right;
    private long scores;

    private CpuScratch(
            int threads, @Nullable OneDnn library, Map<BFloatMatmul.Shape, Long> ofShapes) {
        this.threads = threads;
        this.library = library;
        this.ofShapes = ofShapes;
        multipliesBFloats = library != null && library.multipliesBFloat16();
        padding = new long[threads];
        bfloatPadding = new long[threads];
        products = new long[threads];
        widened = new long[threads];
    }

    /** Of a device with these settings on this machine; whether it can be opened is not asked. */
    public static CpuScratch of(DeviceSettings settings) {
        boolean java = settings.gemm() == DeviceSettings.Gemm.JAVA;
        OneDnn library =
                !java && OneDnn.probe() instanceof OneDnn.Probe.Found(OneDnn found) ? found : null;
        return new CpuScratch(CpuDevice.threads(settings), library, new HashMap<>());
    }

    @Override
    public long bytes() {
        return left
                + right
                + threads * scores
                + Arrays.stream(padding).sum()
                + Arrays.stream(bfloatPadding).sum()
                + Arrays.stream(products).sum()
                + Arrays.stream(widened).sum();
    }

    @Override
    public CountedKernels anew() {
        return new CpuScratch(threads, library, ofShapes);
    }

    @Override
    public void gemm(
            DType multiply,
            boolean transposeA,
            Tensor a,
            boolean transposeB,
            Tensor b,
            Tensor c,
            boolean accumulate) {
        int k = transposeA ? a.rows() : a.columns();
        if (b.type() == DType.I8) {
            widen(transposeA, a, k, transposeB, c, accumulate);
            return;
        }
        takeFactors(multiply, a, b);
        Pieces pieces = Pieces.of(c.rows(), c.columns(), threads);
        for (int piece = 0; piece < pieces.count(); piece++) {
            int m = pieces.endRow(piece) - pieces.firstRow(piece);
            int n = pieces.endColumn(piece) - pieces.firstColumn(piece);
            if (m > 0 && n > 0) {
                int thread = CpuProducts.worthWaking(pieces, k) ? piece : 0;
                multiply(
                        multiply,
                        new Product(thread)
                                .of(m, n, k)
                                .a(0, strideOf(multiply, a), transposeA)
                                .b(0, strideOf(multiply, b), transposeB)
                                .to(0, c.stride(), accumulate));
            }
        }
    }

    /** Counts a product whose right factor is I8, as {@link ScaledProducts} takes it. */
    private void widen(
            boolean transposeA, Tensor a, int k, boolean transposeB, Tensor c, boolean accumulate) {
        int n = c.columns();
        for (int block = 0; block < ScaledProducts.blocks(k, n); block++) {
            int thread = block % threads;
            int width = ScaledProducts.width(block, k, n);
            long bytes = ScaledProducts.bytes(k, width, transposeB);
            widened[thread] = Math.max(widened[thread], bytes);
            int stride = FactorConverter.stride(transposeB ? k : width);
            multiply(
                    DType.F32,
                    new Product(thread)
                            .of(c.rows(), width, k)
                            .a(0, a.stride(), transposeA)
                            .b(0, stride, transposeB)
                            .to(0, c.stride(), accumulate));
        }
    }

    @Override
    public void weightGradient(
            DType multiply, Tensor x, Tensor dy, Tensor dWeight, TokenBlocks blocks) {
        takeFactors(multiply, x, dy);
        Pieces pieces = Pieces.of(dWeight.rows(), dWeight.columns(), threads);
        for (int piece = 0; piece < pieces.count(); piece++) {
            int thread = CpuProducts.worthWaking(pieces, blocks.rows()) ? piece : 0;
            CpuProducts.eachTile(
                    pieces,
                    piece,
                    blocks,
                    (row, m, column, n, first, depth) ->
                            multiply(
                                    multiply,
                                    new Product(thread)
                                            .of(m, n, depth)
                                            .aTransposed(0, strideOf(multiply, x))
                                            .b(0, strideOf(multiply, dy))
                                            .addTo(0, dWeight.stride())));
        }
    }

    private void takeFactors(DType multiply, Tensor a, Tensor b) {
        int factorBytes = factorBytes(multiply);
        left = Math.max(left, converted(multiply, a) ? FactorConverter.bytes(a, factorBytes) : 0);
        right = Math.max(right, converted(multiply, b) ? FactorConverter.bytes(b, factorBytes) : 0);
    }

    private boolean converted(DType multiply, Tensor factor) {
        return CpuProducts.converts(multiply, factor, multipliesBFloats);
    }

    private int factorBytes(DType multiply) {
        return multipliesBFloats && multiply == DType.BF16 ? DType.BF16.bytes() : DType.F32.bytes();
    }

    /** Counts a product, whose operands have no addresses. */
    private void multiply(DType multiply, Product p) {
        if (library == null) {
            return;
        }
        boolean bfloats = multiply == DType.BF16 && multipliesBFloats;
        boolean padded = p.m < RowPadding.LEAST_ROWS && !p.transposeA;
        if (padded) {
            long[] room = bfloats ? bfloatPadding : padding;
            DType factors = bfloats ? DType.BF16 : DType.F32;
            int stride = RowPadding.stride(p.k, p.strideA, factors);
            room[p.thread] = Math.max(room[p.thread], RowPadding.bytes(p.n, stride, factors));
        }
        if (bfloats) {
            int first = OneDnnBFloatProduct.firstDepth(p.k);
            takeBFloats(p, padded, first, p.accumulate);
            if (first < p.k) {
                takeBFloats(p, padded, p.k - first, true);
            }
        }
    }

    private void takeBFloats(Product p, boolean padded, int depth, boolean accumulate) {
        var shape =
                new BFloatMatmul.Shape(
                        padded ? RowPadding.LEAST_ROWS : p.m,
                        p.n,
                        depth,
                        p.transposeA,
                        padded ? RowPadding.stride(p.k, p.strideA, DType.BF16) : p.strideA,
                        p.transposeB,
                        p.strideB,
                        padded ? p.n : p.strideC,
                        accumulate);
        products[p.thread] = Math.max(products[p.thread], ofShape(requireNonNull(library), shape));
    }

    private int strideOf(DType multiply, Tensor factor) {
        return converted(multiply, factor)
                ? FactorConverter.stride(factor.columns())
                : factor.stride();
    }

    private long ofShape(OneDnn oneDnn, BFloatMatmul.Shape shape) {
        Long known = ofShapes.get(shape);
        if (known != null) {
            return known;
        }
        try (var kernel = new BFloatMatmul(oneDnn, shape)) {
            long bytes = OneDnnBFloatProduct.scratchBytes(kernel);
            ofShapes.put(shape, bytes);
            return bytes;
        }
    }

    @Override
    public void attention(
            DType multiply,
            Tensor qkv,
            Tensor y,
            Tensor logSumExp,
            AttentionShape shape,
            int context,
            TokenBlocks blocks) {
        attention(1, shape, blocks);
    }

    @Override
    public void attentionBackward(
            DType multiply,
            Tensor qkv,
            Tensor y,
            Tensor logSumExp,
            Tensor dy,
            Tensor dQkv,
            AttentionShape shape,
            int context,
            TokenBlocks blocks) {
        attention(2, shape, blocks);
    }

    private void attention(int squares, AttentionShape shape, TokenBlocks blocks) {
        scores(CpuAttention.scratchBytes(squares, shape, blocks));
        int keys = CpuAttention.keysOfSmallBlock(shape, blocks, RowPadding.LEAST_ROWS);
        if (keys > 0) {
            pad(CpuAttention.elements(shape, blocks), keys, shape.headSize());
        }
    }

    /** Products of queries with keys, and of scores with values. */
    private void pad(long elements, int keys, int width) {
        for (int thread = 0; thread < (WorkerPool.worthWaking(elements) ? threads : 1); thread++) {
            if (library != null) {
                long bytes = RowPadding.bytes(keys, width, DType.F32);
                padding[thread] = Math.max(padding[thread], bytes);
            }
        }
    }

    @Override
    public void attentionToEarlier(
            DType multiply,
            Tensor q,
            Tensor keyValues,
            Tensor y,
            Tensor logSumExp,
            EarlierKeys keys) {
        earlier(1, q, keyValues, keys);
    }

    @Override
    public void attentionToEarlierBackward(
            DType multiply,
            Tensor q,
            Tensor keyValues,
            Tensor y,
            Tensor logSumExp,
            Tensor dy,
            Tensor dq,
            Tensor dKeyValues,
            EarlierKeys keys) {
        earlier(2, q, keyValues, keys);
    }

    private void earlier(int squares, Tensor q, Tensor keyValues, EarlierKeys keys) {
        int queries = q.rows();
        int count = keyValues.rows();
        scores(CpuEarlierAttention.scratchBytes(squares, keys, queries, count));
        int least = RowPadding.LEAST_ROWS;
        int ofSmall = CpuEarlierAttention.keysOfSmallBlock(keys, queries, count, least);
        if (ofSmall > 0) {
            long elements = CpuEarlierAttention.elements(keys, queries, count);
            pad(elements, ofSmall, keys.shape().headSize());
        }
    }

    @Override
    public void retentionStates(
            Tensor qkv, Tensor states, RetentionShape shape, int context, TokenBlocks blocks) {
        retention(0, shape, blocks);
    }

    @Override
    public void retention(
            Tensor qkv,
            Tensor states,
            Tensor y,
            RetentionShape shape,
            int context,
            TokenBlocks blocks) {
        retention(1, shape, blocks);
    }

    @Override
    public void retentionBackward(
            Tensor qkv,
            Tensor states,
            Tensor dy,
            Tensor dQkv,
            RetentionShape shape,
            int context,
            TokenBlocks blocks) {
        retention(2, shape, blocks);
    }

    @Override
    public void retentionStateGradient(
            Tensor qkv,
            Tensor gradient,
            Tensor dy,
            RetentionShape shape,
            int context,
            TokenBlocks blocks) {
        retention(0, shape, blocks);
    }

    /** Products of small chunks have their rows padded. */
    private void retention(int squares, RetentionShape shape, TokenBlocks blocks) {
        scores(CpuRetention.scratchBytes(squares, shape, blocks));
        boolean wakes = WorkerPool.worthWaking(CpuRetention.elements(shape, blocks));
        for (int chunk = 0; chunk < blocks.blocksPerSequence(); chunk++) {
            int rows = blocks.rowsOf(chunk * blocks.sequences());
            if (rows < RowPadding.LEAST_ROWS && library != null) {
                long bytes = CpuRetention.paddingBytes(squares, shape, rows);
                for (int thread = 0; thread < (wakes ? threads : 1); thread++) {
                    padding[thread] = Math.max(padding[thread], bytes);
                }
            }
        }
    }

    private void scores(long bytes) {
        scores = Math.max(scores, bytes);
    }
}
