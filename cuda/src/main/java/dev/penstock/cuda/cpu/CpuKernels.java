package dev.penstock.cuda.cpu;

import dev.penstock.cuda.cpu.vector.Addresses;
import dev.penstock.cuda.cpu.vector.CodecKernels;
import dev.penstock.cuda.cpu.vector.FixedPointKernels;
import dev.penstock.cuda.cpu.vector.Int8Kernels;
import dev.penstock.cuda.cpu.vector.Lanes;
import dev.penstock.cuda.cpu.vector.RetentionKernels;
import dev.penstock.cuda.cpu.vector.RotaryKernels;
import dev.penstock.cuda.cpu.vector.TopKKernels;
import dev.penstock.cuda.device.AdamWStep;
import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DropoutMask;
import dev.penstock.cuda.device.EarlierKeys;
import dev.penstock.cuda.device.Gelu;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.RetentionShape;
import dev.penstock.cuda.device.RowCodec;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.device.TokenRange;
import dev.penstock.cuda.device.TopK;
import dev.penstock.cuda.device.WireCodec;
import dev.penstock.cuda.kernels.Dynamic8;
import dev.penstock.cuda.kernels.IndexRules;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * The op table on vectors and threads: each op splits rows or columns over the pool and calls a
 * small kernel per row. Expects arguments that were checked.
 */
final class CpuKernels implements Kernels {
    /** Of two blocks of moments. */
    private static final long DECODED_BYTES = 2L * Dynamic8.BLOCK * Float.BYTES;

    private final RowSplit split;
    private final CpuProducts products;
    private final CpuAttention attention;
    private final CpuEarlierAttention earlier;
    private final CpuRetention retention;
    private final RetentionKernels retentionRows;
    private final ElementKernels elements;
    private final LayerNormKernels norms;
    private final RmsNormKernels rmsNorms;
    private final GeluKernels gelus;
    private final ExactGeluKernels exactGelus;
    private final GateKernels gates;
    private final RotaryKernels rotary;
    private final CrossEntropyKernels losses;
    private final OptimizerKernels optimizer;
    private final WorkerPool pool;
    private final MemorySegment decoded;
    private final BFloat16Kernels bfloats;
    private final Int8Kernels integers;
    private final CodecKernels codecs;
    private final FixedPointKernels fixedPoint;
    private final TopKKernels largest;
    private double[] partialSums = new double[1];

    /** What the threads found in the call under way. */
    private volatile boolean finite;

    CpuKernels(
            Lanes lanes,
            WorkerPool pool,
            CpuProducts products,
            CpuAttention attention,
            CpuEarlierAttention earlier,
            CpuRetention retention) {
        this.split = new RowSplit(pool);
        this.products = products;
        this.attention = attention;
        this.earlier = earlier;
        this.retention = retention;
        this.retentionRows = new RetentionKernels(lanes);
        this.elements = new ElementKernels(lanes);
        this.norms = new LayerNormKernels(lanes);
        this.rmsNorms = new RmsNormKernels(lanes);
        this.gelus = new GeluKernels(lanes);
        this.exactGelus = new ExactGeluKernels(lanes);
        this.gates = new GateKernels(lanes);
        this.rotary = new RotaryKernels(lanes);
        this.losses = new CrossEntropyKernels(new SoftmaxKernels(lanes));
        this.optimizer = new OptimizerKernels(lanes);
        this.pool = pool;
        this.decoded = Arena.ofAuto().allocate(pool.threads() * DECODED_BYTES, 64);
        this.bfloats = new BFloat16Kernels(lanes);
        this.integers = new Int8Kernels(lanes);
        this.codecs = new CodecKernels(lanes);
        this.fixedPoint = new FixedPointKernels(lanes);
        this.largest = new TopKKernels(lanes);
    }

    private static long row(Tensor tensor, long address, int row) {
        return address + (long) row * tensor.stride() * tensor.type().bytes();
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
        products.gemm(multiply, transposeA, a, transposeB, b, c, accumulate);
    }

    @Override
    public void weightGradient(
            DType multiply, Tensor x, Tensor dy, Tensor dWeight, TokenBlocks blocks) {
        products.weightGradient(multiply, x, dy, dWeight, blocks);
    }

    @Override
    public void biasGradient(Tensor dy, Tensor dBias, TokenBlocks blocks) {
        long from = dy.address();
        long to = dBias.address();
        split.columns(
                dy.rows(),
                dy.columns(),
                (first, count) ->
                        eachRow(
                                blocks,
                                i ->
                                        elements.add(
                                                row(dy, from, i) + 4L * first,
                                                to + 4L * first,
                                                count)));
    }

    /** Rows of the unit in the order of summation. */
    private static void eachRow(TokenBlocks blocks, RowSplit.RowWork work) {
        for (int block = 0; block < blocks.count(); block++) {
            int first = blocks.firstRow(block);
            int end = first + blocks.rowsOf(block);
            for (int i = first; i < end; i++) {
                work.run(i);
            }
        }
    }

    @Override
    public void addBias(Tensor y, Tensor bias) {
        long to = y.address();
        long from = bias.address();
        split.rows(y.rows(), y.columns(), i -> elements.add(from, row(y, to, i), y.columns()));
    }

    @Override
    public void addBiasAndResidual(Tensor y, Tensor bias, Tensor residual) {
        long to = y.address();
        long biasAt = bias.address();
        long from = residual.address();
        split.rows(
                y.rows(),
                y.columns(),
                i -> elements.addBoth(biasAt, row(residual, from, i), row(y, to, i), y.columns()));
    }

    @Override
    public void embedding(Tensor tokens, TokenRange range, Tensor table, Tensor y) {
        IndexRules.inRange("embedding", "tokens", tokens, range.vocabulary());
        long tokenAt = tokens.address();
        long tableAt = table.address();
        long to = y.address();
        long bytes = 4L * y.columns();
        split.rows(
                y.rows(),
                y.columns(),
                i -> {
                    int row = range.row(Addresses.getInt(tokenAt + 4L * i), table.rows());
                    if (row < 0) {
                        Addresses.clear(row(y, to, i), bytes);
                    } else {
                        widen(table, row(table, tableAt, row), row(y, to, i));
                    }
                });
    }

    /** A row of a tensor of floats as F32. */
    private void widen(Tensor of, long from, long to) {
        switch (of.type()) {
            case F32 -> Addresses.copy(from, to, 4L * of.columns());
            case BF16 -> bfloats.widen(from, to, of.columns());
            case F16 -> codecs.fromHalves(from, to, of.columns());
            case I8 -> {
                float scale = Addresses.getFloat(Int8Kernels.scaleAt(from, of.stride()));
                integers.widen(from, scale, to, of.columns());
            }
            case I32, I64, DYNAMIC8, DYNAMIC8_POSITIVE ->
                    throw new IllegalStateException("expected floats, got " + of);
        }
    }

    @Override
    public void embeddingBackward(
            Tensor dy, Tensor tokens, TokenRange range, Tensor dTable, TokenBlocks blocks) {
        IndexRules.inRange("embeddingBackward", "tokens", tokens, range.vocabulary());
        long from = dy.address();
        long tokenAt = tokens.address();
        long tableAt = dTable.address();
        split.columns(
                dy.rows(),
                dy.columns(),
                (first, count) ->
                        eachRow(
                                blocks,
                                i -> {
                                    int token = Addresses.getInt(tokenAt + 4L * i);
                                    int row = range.row(token, dTable.rows());
                                    if (row >= 0) {
                                        elements.add(
                                                row(dy, from, i) + 4L * first,
                                                row(dTable, tableAt, row) + 4L * first,
                                                count);
                                    }
                                }));
    }

    @Override
    public void layerNorm(
            Tensor x,
            Tensor gain,
            Tensor bias,
            Tensor y,
            Tensor mean,
            Tensor rstd,
            double epsilon) {
        long from = x.address();
        long gainAt = gain.address();
        long biasAt = bias.address();
        long to = y.address();
        long means = mean.address();
        long rstds = rstd.address();
        int n = x.columns();
        split.rows(
                x.rows(),
                n,
                i -> {
                    long in = row(x, from, i);
                    float average = norms.mean(in, n);
                    float scale = norms.reciprocalDeviation(in, n, average, (float) epsilon);
                    Addresses.setFloat(means + 4L * i, average);
                    Addresses.setFloat(rstds + 4L * i, scale);
                    norms.apply(in, gainAt, biasAt, row(y, to, i), n, average, scale);
                });
    }

    @Override
    public void layerNormBackwardInput(
            Tensor dy, Tensor x, Tensor gain, Tensor mean, Tensor rstd, Tensor dx) {
        long gradients = dy.address();
        long from = x.address();
        long gainAt = gain.address();
        long to = dx.address();
        long means = mean.address();
        long rstds = rstd.address();
        int n = x.columns();
        split.rows(
                x.rows(),
                n,
                i -> {
                    long g = row(dy, gradients, i);
                    long in = row(x, from, i);
                    float average = Addresses.getFloat(means + 4L * i);
                    float scale = Addresses.getFloat(rstds + 4L * i);
                    float averageG = norms.averageG(g, gainAt, n);
                    float averageGh = norms.averageGh(g, in, gainAt, n, average, scale);
                    norms.addInputGradient(
                            g, in, gainAt, row(dx, to, i), n, average, scale, averageG, averageGh);
                });
    }

    @Override
    public void layerNormBackwardWeight(
            Tensor dy,
            Tensor x,
            Tensor mean,
            Tensor rstd,
            Tensor dGain,
            Tensor dBias,
            TokenBlocks blocks) {
        long gradients = dy.address();
        long from = x.address();
        long means = mean.address();
        long rstds = rstd.address();
        long gains = dGain.address();
        long biases = dBias.address();
        split.columns(
                x.rows(),
                x.columns(),
                (first, count) ->
                        eachRow(
                                blocks,
                                i ->
                                        norms.backwardWeight(
                                                row(dy, gradients, i) + 4L * first,
                                                row(x, from, i) + 4L * first,
                                                gains + 4L * first,
                                                biases + 4L * first,
                                                count,
                                                Addresses.getFloat(means + 4L * i),
                                                Addresses.getFloat(rstds + 4L * i))));
    }

    @Override
    public void layerNormPart(Tensor x, Tensor part) {
        long from = x.address();
        long to = part.address();
        int n = x.columns();
        split.rows(
                x.rows(),
                n,
                i -> {
                    long in = row(x, from, i);
                    float average = norms.mean(in, n);
                    Addresses.setFloat(to + 8L * i, average);
                    Addresses.setFloat(to + 8L * i + 4, norms.squares(in, n, average));
                });
    }

    /** Sums of squares of several parts are brought together as by Chan, Golub and LeVeque. */
    @Override
    public void layerNormOfParts(
            Tensor parts,
            Tensor x,
            Tensor gain,
            Tensor bias,
            Tensor y,
            Tensor mean,
            Tensor rstd,
            double epsilon) {
        long from = x.address();
        long gainAt = gain.address();
        long biasAt = bias.address();
        long to = y.address();
        long means = mean.address();
        long rstds = rstd.address();
        long numbers = parts.address();
        int n = x.columns();
        split.rows(
                x.rows(),
                n,
                i -> {
                    float average = average(parts, numbers + 8L * i);
                    double squares = 0;
                    for (int k = 0; k < parts.rows(); k++) {
                        long at = row(parts, numbers, k) + 8L * i;
                        double apart = (double) Addresses.getFloat(at) - average;
                        squares += Addresses.getFloat(at + 4) + n * apart * apart;
                    }
                    double variance = squares / ((double) n * parts.rows());
                    float scale = (float) (1 / Math.sqrt(variance + epsilon));
                    Addresses.setFloat(means + 4L * i, average);
                    Addresses.setFloat(rstds + 4L * i, scale);
                    norms.apply(row(x, from, i), gainAt, biasAt, row(y, to, i), n, average, scale);
                });
    }

    private static float average(Tensor parts, long at) {
        double sum = 0;
        for (int k = 0; k < parts.rows(); k++) {
            sum += Addresses.getFloat(row(parts, at, k));
        }
        return (float) (sum / parts.rows());
    }

    @Override
    public void layerNormBackwardPart(
            Tensor dy, Tensor x, Tensor gain, Tensor mean, Tensor rstd, Tensor part) {
        long gradients = dy.address();
        long from = x.address();
        long gainAt = gain.address();
        long means = mean.address();
        long rstds = rstd.address();
        long to = part.address();
        int n = x.columns();
        split.rows(
                x.rows(),
                n,
                i -> {
                    long g = row(dy, gradients, i);
                    float average = Addresses.getFloat(means + 4L * i);
                    float scale = Addresses.getFloat(rstds + 4L * i);
                    Addresses.setFloat(to + 8L * i, norms.averageG(g, gainAt, n));
                    Addresses.setFloat(
                            to + 8L * i + 4,
                            norms.averageGh(g, row(x, from, i), gainAt, n, average, scale));
                });
    }

    @Override
    public void layerNormBackwardOfParts(
            Tensor parts, Tensor dy, Tensor x, Tensor gain, Tensor mean, Tensor rstd, Tensor dx) {
        long gradients = dy.address();
        long from = x.address();
        long gainAt = gain.address();
        long means = mean.address();
        long rstds = rstd.address();
        long numbers = parts.address();
        long to = dx.address();
        int n = x.columns();
        split.rows(
                x.rows(),
                n,
                i ->
                        norms.addInputGradient(
                                row(dy, gradients, i),
                                row(x, from, i),
                                gainAt,
                                row(dx, to, i),
                                n,
                                Addresses.getFloat(means + 4L * i),
                                Addresses.getFloat(rstds + 4L * i),
                                average(parts, numbers + 8L * i),
                                average(parts, numbers + 8L * i + 4)));
    }

    @Override
    public void rmsNorm(Tensor x, Tensor gain, Tensor y, Tensor r, double epsilon) {
        long from = x.address();
        long gainAt = gain.address();
        long to = y.address();
        long roots = r.address();
        int n = gain.columns();
        int heads = x.columns() / n;
        split.rows(
                x.rows(),
                x.columns(),
                i -> {
                    for (int head = 0; head < heads; head++) {
                        long at = 4L * head * n;
                        long in = row(x, from, i) + at;
                        float root = rmsNorms.reciprocalRoot(in, n, (float) epsilon);
                        Addresses.setFloat(roots + 4L * ((long) i * heads + head), root);
                        rmsNorms.apply(in, gainAt, row(y, to, i) + at, n, root);
                    }
                });
    }

    @Override
    public void rmsNormBackwardInput(
            Tensor dy, Tensor x, Tensor gain, Tensor r, Tensor dx, boolean accumulate) {
        long gradients = dy.address();
        long from = x.address();
        long gainAt = gain.address();
        long to = dx.address();
        long roots = r.address();
        int n = gain.columns();
        int heads = x.columns() / n;
        split.rows(
                x.rows(),
                x.columns(),
                i -> {
                    for (int head = 0; head < heads; head++) {
                        long at = 4L * head * n;
                        long g = row(dy, gradients, i) + at;
                        long in = row(x, from, i) + at;
                        long out = row(dx, to, i) + at;
                        float root = Addresses.getFloat(roots + 4L * ((long) i * heads + head));
                        float average = rmsNorms.averageGh(g, in, gainAt, n, root);
                        if (accumulate) {
                            rmsNorms.addInputGradient(g, in, gainAt, out, n, root, average);
                        } else {
                            rmsNorms.setInputGradient(g, in, gainAt, out, n, root, average);
                        }
                    }
                });
    }

    @Override
    public void rmsNormBackwardWeight(
            Tensor dy, Tensor x, Tensor r, Tensor dGain, TokenBlocks blocks) {
        long gradients = dy.address();
        long from = x.address();
        long roots = r.address();
        long gains = dGain.address();
        int n = dGain.columns();
        int heads = x.columns() / n;
        split.columns(
                x.rows() * heads,
                n,
                (first, count) ->
                        eachRow(
                                blocks,
                                i -> {
                                    for (int head = 0; head < heads; head++) {
                                        long at = 4L * (head * n + first);
                                        rmsNorms.backwardWeight(
                                                row(dy, gradients, i) + at,
                                                row(x, from, i) + at,
                                                gains + 4L * first,
                                                count,
                                                Addresses.getFloat(
                                                        roots + 4L * ((long) i * heads + head)));
                                    }
                                }));
    }

    @Override
    public void biasGelu(Tensor pre, Tensor bias, Tensor y, Gelu form) {
        long from = pre.address();
        long biasAt = bias.address();
        long to = y.address();
        int n = y.columns();
        switch (form) {
            case TANH ->
                    split.rows(
                            y.rows(),
                            n,
                            i -> gelus.biasGelu(row(pre, from, i), biasAt, row(y, to, i), n));
            case EXACT ->
                    split.rows(
                            y.rows(),
                            n,
                            i -> exactGelus.biasGelu(row(pre, from, i), biasAt, row(y, to, i), n));
        }
    }

    @Override
    public void geluBackward(Tensor pre, Tensor dy, Gelu form) {
        switch (form) {
            case TANH -> split.runs(pre, dy, (_, x, y, n) -> gelus.backward(x, y, n));
            case EXACT -> split.runs(pre, dy, (_, x, y, n) -> exactGelus.backward(x, y, n));
        }
    }

    @Override
    public void swiGlu(Tensor gated, Tensor z) {
        long from = gated.address();
        long to = z.address();
        int n = z.columns();
        split.rows(
                z.rows(),
                2 * n,
                i -> {
                    long a = row(gated, from, i);
                    gates.swiGlu(a, a + 4L * n, row(z, to, i), n);
                });
    }

    @Override
    public void swiGluBackward(Tensor gated, Tensor dz, Tensor dGated) {
        long from = gated.address();
        long gradients = dz.address();
        long to = dGated.address();
        int n = dz.columns();
        split.rows(
                dz.rows(),
                2 * n,
                i ->
                        gates.backward(
                                row(gated, from, i), row(dz, gradients, i), row(dGated, to, i), n));
    }

    @Override
    public void biasTanh(Tensor y, Tensor bias) {
        long at = y.address();
        long biasAt = bias.address();
        int n = y.columns();
        split.rows(y.rows(), n, i -> gelus.biasTanh(row(y, at, i), biasAt, n));
    }

    @Override
    public void tanhBackward(Tensor y, Tensor dy) {
        split.runs(y, dy, (_, t, gradient, n) -> gelus.tanhBackward(t, gradient, n));
    }

    @Override
    public void geGlu(Tensor gated, Tensor z) {
        long from = gated.address();
        long to = z.address();
        int n = z.columns();
        split.rows(
                z.rows(),
                2 * n,
                i -> {
                    long a = row(gated, from, i);
                    exactGelus.geGlu(a, a + 4L * n, row(z, to, i), n);
                });
    }

    @Override
    public void geGluBackward(Tensor gated, Tensor dz, Tensor dGated) {
        long from = gated.address();
        long gradients = dz.address();
        long to = dGated.address();
        int n = dz.columns();
        split.rows(
                dz.rows(),
                2 * n,
                i ->
                        exactGelus.geGluBackward(
                                row(gated, from, i), row(dz, gradients, i), row(dGated, to, i), n));
    }

    @Override
    public void retentionStates(
            Tensor qkv, Tensor states, RetentionShape shape, int context, TokenBlocks blocks) {
        retention.states(qkv, states, shape, context, blocks);
    }

    @Override
    public void retention(
            Tensor qkv,
            Tensor states,
            Tensor y,
            RetentionShape shape,
            int context,
            TokenBlocks blocks) {
        retention.forward(qkv, states, y, shape, context, blocks);
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
        retention.backward(qkv, states, dy, dQkv, shape, context, blocks);
    }

    @Override
    public void retentionStateGradient(
            Tensor qkv,
            Tensor gradient,
            Tensor dy,
            RetentionShape shape,
            int context,
            TokenBlocks blocks) {
        retention.stateGradient(qkv, gradient, dy, shape, context, blocks);
    }

    @Override
    public void gatedHeadNorm(Tensor x, @Nullable Tensor gate, Tensor y, Tensor r, double epsilon) {
        long from = x.address();
        long gateAt = gate == null ? 0 : gate.address();
        long to = y.address();
        long roots = r.address();
        int size = x.columns() / r.columns();
        split.rows(
                x.rows(),
                2 * x.columns(),
                i -> {
                    for (int head = 0; head < r.columns(); head++) {
                        long at = 4L * head * size;
                        long xAt = row(x, from, i) + at;
                        float root = rmsNorms.reciprocalRoot(xAt, size, (float) epsilon);
                        Addresses.setFloat(row(r, roots, i) + 4L * head, root);
                        retentionRows.scale(xAt, row(y, to, i) + at, size, root);
                    }
                    if (gate != null) {
                        retentionRows.open(row(gate, gateAt, i), row(y, to, i), x.columns());
                    }
                });
    }

    @Override
    public void gatedHeadNormBackward(
            Tensor dy,
            Tensor x,
            @Nullable Tensor gate,
            Tensor r,
            Tensor dx,
            @Nullable Tensor dGate) {
        long gradients = dy.address();
        long from = x.address();
        long gateAt = gate == null ? 0 : gate.address();
        long roots = r.address();
        long to = dx.address();
        long dGateAt = dGate == null ? 0 : dGate.address();
        int size = x.columns() / r.columns();
        split.rows(
                x.rows(),
                4 * x.columns(),
                i -> {
                    for (int head = 0; head < r.columns(); head++) {
                        long at = 4L * head * size;
                        long xAt = row(x, from, i) + at;
                        long dxAt = row(dx, to, i) + at;
                        float root = Addresses.getFloat(row(r, roots, i) + 4L * head);
                        long dyAt = row(dy, gradients, i) + at;
                        if (gate == null || dGate == null) {
                            retentionRows.scale(dyAt, dxAt, size, 1);
                        } else {
                            long open = row(gate, gateAt, i) + at;
                            long dOpen = row(dGate, dGateAt, i) + at;
                            retentionRows.openBackward(dyAt, xAt, open, dxAt, dOpen, size, root);
                        }
                        float average = retentionRows.average(dxAt, xAt, size, root);
                        retentionRows.normBackward(xAt, dxAt, size, root, average);
                    }
                });
    }

    @Override
    public void dropout(Tensor x, Tensor rowKeys, DropoutMask mask, Tensor y, boolean accumulate) {
        long from = x.address();
        long keys = rowKeys.address();
        long to = y.address();
        int n = x.columns();
        split.rows(
                x.rows(),
                n,
                i ->
                        elements.dropout(
                                row(x, from, i),
                                row(rowKeys, keys, i),
                                mask,
                                row(y, to, i),
                                n,
                                accumulate));
    }

    @Override
    public void rotate(Tensor x, Tensor turns, boolean back) {
        eachHead(x, turns, back, rotary::turn);
    }

    @Override
    public void rotateNeighbours(Tensor x, Tensor turns, boolean back) {
        eachHead(x, turns, back, rotary::turnNeighbours);
    }

    @FunctionalInterface
    private interface HeadTurn {
        void turn(long x, long turn, int half, float sign);
    }

    private void eachHead(Tensor x, Tensor turns, boolean back, HeadTurn one) {
        long rows = x.address();
        long table = turns.address();
        int half = turns.columns() / 2;
        int heads = x.columns() / turns.columns();
        float sign = back ? -1 : 1;
        split.rows(
                x.rows(),
                x.columns(),
                i -> {
                    long turn = row(turns, table, i % turns.rows());
                    for (int head = 0; head < heads; head++) {
                        one.turn(row(x, rows, i) + 8L * half * head, turn, half, sign);
                    }
                });
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
        attention.forward(qkv, y, logSumExp, shape, context, blocks);
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
        attention.backward(qkv, y, logSumExp, dy, dQkv, shape, context, blocks);
    }

    @Override
    public void attentionToEarlier(
            DType multiply,
            Tensor q,
            Tensor keyValues,
            Tensor y,
            Tensor logSumExp,
            EarlierKeys keys) {
        earlier.forward(q, keyValues, y, logSumExp, keys);
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
        earlier.backward(q, keyValues, y, logSumExp, dy, dq, dKeyValues, keys);
    }

    @Override
    public void softmaxPart(
            Tensor logits, Tensor targets, TokenRange range, Tensor part, boolean gradient) {
        IndexRules.inRange("softmaxPart", "targets", targets, range.vocabulary());
        long logitsAt = logits.address();
        long targetsAt = targets.address();
        long partAt = part.address();
        int n = logits.columns();
        split.rows(
                logits.rows(),
                n,
                i ->
                        losses.part(
                                row(logits, logitsAt, i),
                                n,
                                range.row(Addresses.getInt(targetsAt + 4L * i), n),
                                CrossEntropyKernels.numbers(partAt, i),
                                gradient));
    }

    @Override
    public void crossEntropy(
            Tensor parts,
            int shard,
            Tensor logits,
            Tensor targets,
            TokenRange range,
            Tensor lossOfRows,
            float gradientScale) {
        long partsAt = parts.address();
        long logitsAt = logits.address();
        long targetsAt = targets.address();
        long lossesAt = lossOfRows.address();
        int n = logits.columns();
        split.rows(
                logits.rows(),
                n,
                i -> {
                    Addresses.setFloat(lossesAt + 4L * i, losses.loss(parts, partsAt, i));
                    if (gradientScale != 0) {
                        int target = range.row(Addresses.getInt(targetsAt + 4L * i), n);
                        long row = row(logits, logitsAt, i);
                        losses.gradient(parts, partsAt, i, shard, row, n, target, gradientScale);
                    }
                });
    }

    @Override
    public void encode(RowCodec codec, Tensor x, Tensor coded) {
        long from = x.address();
        long to = coded.address();
        int n = x.columns();
        long end = 4L * coded.columns();
        split.rows(
                x.rows(),
                n,
                i -> {
                    long row = row(x, from, i);
                    long words = row(coded, to, i);
                    switch (codec) {
                        case TopK topK -> largest.encode(topK, row, words, n);
                        case WireCodec.FP16 -> {
                            Addresses.setInt(words + end - 4, 0); // an odd row leaves half of it
                            codecs.toHalves(row, words, n);
                        }
                        case WireCodec.BF16 -> {
                            Addresses.setInt(words + end - 4, 0);
                            bfloats.narrow(row, words, n);
                        }
                        case WireCodec scaled ->
                                codecs.toIntegers(scaled, row, words, n, words + end - 4);
                    }
                });
    }

    @Override
    public void decode(RowCodec codec, Tensor coded, Tensor x) {
        long from = coded.address();
        long to = x.address();
        int n = x.columns();
        long end = 4L * coded.columns();
        split.rows(
                x.rows(),
                n,
                i -> {
                    long words = row(coded, from, i);
                    long row = row(x, to, i);
                    switch (codec) {
                        case TopK topK -> largest.decode(topK, words, row, n);
                        case WireCodec.FP16 -> codecs.fromHalves(words, row, n);
                        case WireCodec.BF16 -> bfloats.widen(words, row, n);
                        case WireCodec scaled -> {
                            float scale = Addresses.getFloat(words + end - 4);
                            codecs.fromIntegers(scaled, words, row, n, scale);
                        }
                    }
                });
    }

    @Override
    public boolean foldGradient(Tensor gradient, Tensor sum, float limit, boolean accumulate) {
        finite = true;
        split.runs(
                gradient,
                sum,
                (_, from, to, n) -> {
                    if (!fixedPoint.fold(from, to, n, limit, accumulate)) {
                        finite = false;
                    }
                });
        return finite;
    }

    @Override
    public void unfoldGradient(Tensor sum, Tensor gradient) {
        split.runs(sum, gradient, (_, from, to, n) -> fixedPoint.unfold(from, to, n));
    }

    @Override
    public void zero(Tensor x) {
        int bytes = x.type().bytes();
        split.runs(x, x, (_, at, _, n) -> Addresses.clear(at, (long) n * bytes));
    }

    @Override
    public void add(Tensor x, Tensor y) {
        if (x.type() == DType.I64) {
            split.runs(x, y, (_, from, to, n) -> fixedPoint.add(from, to, n));
        } else {
            split.runs(x, y, (_, from, to, n) -> elements.add(from, to, n));
        }
    }

    @Override
    public void subtract(Tensor x, Tensor y) {
        split.runs(x, y, (_, from, to, n) -> elements.subtract(from, to, n));
    }

    @Override
    public void blend(float a, Tensor x, float b, Tensor y) {
        split.runs(x, y, (_, from, to, n) -> elements.blend(a, from, b, to, n));
    }

    @Override
    public void copy(Tensor x, Tensor y) {
        int bytes = x.type().bytes();
        if (y.type() == DType.I8) {
            long from = x.address();
            long to = y.address();
            split.rows(
                    x.rows(),
                    x.columns(),
                    i -> integers.narrow(row(x, from, i), row(y, to, i), x.columns(), y.stride()));
        } else if (x.type() == y.type()) {
            split.runs(x, y, (_, from, to, n) -> Addresses.copy(from, to, (long) n * bytes));
        } else if (y.type() == DType.F16) {
            split.runs(x, y, (_, from, to, n) -> codecs.toHalves(from, to, n));
        } else if (x.type() == DType.F16) {
            split.runs(x, y, (_, from, to, n) -> codecs.fromHalves(from, to, n));
        } else if (x.type() == DType.F32) {
            split.runs(x, y, (_, from, to, n) -> bfloats.narrow(from, to, n));
        } else {
            split.runs(x, y, (_, from, to, n) -> bfloats.widen(from, to, n));
        }
    }

    @Override
    public double squaredNorm(Tensor x) {
        int perRun = optimizer.partialSums();
        int count = RowSplit.runs(x) * perRun;
        if (partialSums.length < count) {
            partialSums = new double[count];
        }
        double[] sums = partialSums;
        split.runs(x, x, (run, at, _, n) -> optimizer.squares(at, n, sums, run * perRun));
        double sum = 0;
        for (int i = 0; i < count; i++) {
            sum += sums[i];
        }
        return sum;
    }

    @Override
    public boolean allFinite(Tensor x) {
        finite = true;
        split.runs(
                x,
                x,
                (_, at, _, n) -> {
                    if (!elements.allFinite(at, n)) {
                        finite = false;
                    }
                });
        return finite;
    }

    @Override
    public void adamW(Tensor weight, Tensor gradient, Tensor m, Tensor v, AdamWStep step) {
        OptimizerKernels.Factors factors = OptimizerKernels.Factors.of(step);
        if (m.type().isDynamic()) {
            adamWOfBlocks(weight, gradient, m, v, factors);
            return;
        }
        long means = m.address();
        long squares = v.address();
        split.runs(
                weight,
                gradient,
                (run, w, g, n) -> {
                    long at = (long) run * RowSplit.RUN * Float.BYTES;
                    optimizer.adamW(w, g, means + at, squares + at, n, factors);
                });
    }

    private void adamWOfBlocks(
            Tensor weight, Tensor gradient, Tensor m, Tensor v, OptimizerKernels.Factors factors) {
        long weights = weight.address();
        long gradients = gradient.address();
        long means = m.address();
        long squares = v.address();
        long columns = weight.columns();
        pool.run(
                columns,
                thread -> {
                    long room = decoded.address() + thread * DECODED_BYTES;
                    int end = Share.start(m.rows(), 1, thread + 1, pool.threads());
                    for (int i = Share.start(m.rows(), 1, thread, pool.threads()); i < end; i++) {
                        long first = (long) i * Dynamic8.BLOCK;
                        optimizer.adamWOfBlock(
                                weights + Float.BYTES * first,
                                gradients + Float.BYTES * first,
                                row(m, means, i),
                                row(v, squares, i),
                                (int) Math.min(Dynamic8.BLOCK, columns - first),
                                factors,
                                room);
                    }
                });
    }

    @Override
    public void finish() {
        // every call returns with its results
    }
}
