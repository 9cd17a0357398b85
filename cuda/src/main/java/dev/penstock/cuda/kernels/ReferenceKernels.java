package dev.penstock.cuda.kernels;

import dev.penstock.cuda.device.AdamWStep;
import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DropoutMask;
import dev.penstock.cuda.device.EarlierKeys;
import dev.penstock.cuda.device.FixedPoint;
import dev.penstock.cuda.device.Gelu;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.RetentionShape;
import dev.penstock.cuda.device.RowCodec;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.device.TokenRange;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.jspecify.annotations.Nullable;

/**
 * The op table in plain scalar code: one loop per sum, nothing clever. Functions come from {@link
 * StrictMath}, whose bits do not depend on the compiler. Expects arguments that {@link
 * CheckedKernels} let through.
 */
public final class ReferenceKernels implements Kernels {

    @Override
    public void gemm(
            DType multiply,
            boolean transposeA,
            Tensor a,
            boolean transposeB,
            Tensor b,
            Tensor c,
            boolean accumulate) {
        float[][] left = factors(multiply, a, transposeA);
        float[][] right = factors(multiply, b, transposeB);
        HostMatrix result = HostMatrix.of(c);
        for (int i = 0; i < c.rows(); i++) {
            float[] sums = accumulate ? result.row(i) : new float[c.columns()];
            for (int p = 0; p < right.length; p++) {
                addProducts(left[i][p], right[p], sums);
            }
            result.setRow(i, sums);
        }
    }

    private static void addProducts(float factor, float[] row, float[] sums) {
        for (int j = 0; j < sums.length; j++) {
            sums[j] = Math.fma(factor, row[j], sums[j]);
        }
    }

    /** A matrix, or its transpose, as it is multiplied. */
    private static float[][] factors(DType multiply, Tensor tensor, boolean transpose) {
        HostMatrix matrix = HostMatrix.of(tensor);
        float[][] factors =
                transpose
                        ? new float[tensor.columns()][tensor.rows()]
                        : new float[tensor.rows()][tensor.columns()];
        for (int i = 0; i < tensor.rows(); i++) {
            float[] row = matrix.row(i);
            for (int j = 0; j < row.length; j++) {
                float factor = factor(multiply, row[j]);
                if (transpose) {
                    factors[j][i] = factor;
                } else {
                    factors[i][j] = factor;
                }
            }
        }
        return factors;
    }

    private static float factor(DType multiply, float value) {
        return switch (multiply) {
            case BF16 -> BFloat16.round(value);
            case F16 -> Float.float16ToFloat(Float.floatToFloat16(value));
            case F32, I32, I8, DYNAMIC8, DYNAMIC8_POSITIVE, I64 -> value;
        };
    }

    @Override
    public void weightGradient(
            DType multiply, Tensor x, Tensor dy, Tensor dWeight, TokenBlocks blocks) {
        for (int i = 0; i < blocks.count(); i++) {
            Tensor xBlock = x.rows(blocks.firstRow(i), blocks.rowsOf(i));
            Tensor dyBlock = dy.rows(blocks.firstRow(i), blocks.rowsOf(i));
            gemm(multiply, true, xBlock, false, dyBlock, dWeight, true);
        }
    }

    @Override
    public void biasGradient(Tensor dy, Tensor dBias, TokenBlocks blocks) {
        HostMatrix gradient = HostMatrix.of(dy);
        HostMatrix sum = HostMatrix.of(dBias);
        float[] sums = sum.row(0);
        for (int row : rowsInOrder(blocks)) {
            addTo(sums, gradient.row(row));
        }
        sum.setRow(0, sums);
    }

    private static void addTo(float[] sums, float[] values) {
        for (int j = 0; j < sums.length; j++) {
            sums[j] += values[j];
        }
    }

    /** All rows of the unit in the order of summation. */
    static int[] rowsInOrder(TokenBlocks blocks) {
        int[] rows = new int[blocks.rows()];
        int next = 0;
        for (int i = 0; i < blocks.count(); i++) {
            for (int r = 0; r < blocks.rowsOf(i); r++) {
                rows[next++] = blocks.firstRow(i) + r;
            }
        }
        return rows;
    }

    @Override
    public void addBias(Tensor y, Tensor bias) {
        HostMatrix out = HostMatrix.of(y);
        float[] added = HostMatrix.of(bias).row(0);
        for (int i = 0; i < y.rows(); i++) {
            float[] row = out.row(i);
            addTo(row, added);
            out.setRow(i, row);
        }
    }

    @Override
    public void addBiasAndResidual(Tensor y, Tensor bias, Tensor residual) {
        addBias(y, bias);
        add(residual, y);
    }

    @Override
    public void embedding(Tensor tokens, TokenRange range, Tensor table, Tensor y) {
        IndexRules.inRange("embedding", "tokens", tokens, range.vocabulary());
        HostMatrix token = HostMatrix.of(tokens);
        HostMatrix rows = HostMatrix.of(table);
        HostMatrix out = HostMatrix.of(y);
        for (int i = 0; i < y.rows(); i++) {
            int row = range.row(token.getInt(0, i), table.rows());
            out.setRow(i, row < 0 ? new float[y.columns()] : rows.row(row));
        }
    }

    @Override
    public void embeddingBackward(
            Tensor dy, Tensor tokens, TokenRange range, Tensor dTable, TokenBlocks blocks) {
        IndexRules.inRange("embeddingBackward", "tokens", tokens, range.vocabulary());
        HostMatrix token = HostMatrix.of(tokens);
        HostMatrix rows = HostMatrix.of(dTable);
        HostMatrix gradient = HostMatrix.of(dy);
        for (int i : rowsInOrder(blocks)) {
            int row = range.row(token.getInt(0, i), dTable.rows());
            if (row >= 0) {
                float[] sums = rows.row(row);
                addTo(sums, gradient.row(i));
                rows.setRow(row, sums);
            }
        }
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
        ReferenceLayerNorm.forward(x, gain, bias, y, mean, rstd, epsilon);
    }

    @Override
    public void layerNormBackwardInput(
            Tensor dy, Tensor x, Tensor gain, Tensor mean, Tensor rstd, Tensor dx) {
        ReferenceLayerNorm.backwardInput(dy, x, gain, mean, rstd, dx);
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
        ReferenceLayerNorm.backwardWeight(dy, x, mean, rstd, dGain, dBias, rowsInOrder(blocks));
    }

    @Override
    public void layerNormPart(Tensor x, Tensor part) {
        ReferenceLayerNorm.part(x, part);
    }

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
        ReferenceLayerNorm.ofParts(parts, x, gain, bias, y, mean, rstd, epsilon);
    }

    @Override
    public void layerNormBackwardPart(
            Tensor dy, Tensor x, Tensor gain, Tensor mean, Tensor rstd, Tensor part) {
        ReferenceLayerNorm.backwardPart(dy, x, gain, mean, rstd, part);
    }

    @Override
    public void layerNormBackwardOfParts(
            Tensor parts, Tensor dy, Tensor x, Tensor gain, Tensor mean, Tensor rstd, Tensor dx) {
        ReferenceLayerNorm.backwardOfParts(parts, dy, x, gain, mean, rstd, dx);
    }

    @Override
    public void rmsNorm(Tensor x, Tensor gain, Tensor y, Tensor r, double epsilon) {
        ReferenceRmsNorm.forward(x, gain, y, r, epsilon);
    }

    @Override
    public void rmsNormBackwardInput(
            Tensor dy, Tensor x, Tensor gain, Tensor r, Tensor dx, boolean accumulate) {
        ReferenceRmsNorm.backwardInput(dy, x, gain, r, dx, accumulate);
    }

    @Override
    public void rmsNormBackwardWeight(
            Tensor dy, Tensor x, Tensor r, Tensor dGain, TokenBlocks blocks) {
        ReferenceRmsNorm.backwardWeight(dy, x, r, dGain, rowsInOrder(blocks));
    }

    @Override
    public void biasGelu(Tensor pre, Tensor bias, Tensor y, Gelu form) {
        addBias(pre, bias);
        HostMatrix in = HostMatrix.of(pre);
        HostMatrix out = HostMatrix.of(y);
        for (int i = 0; i < y.rows(); i++) {
            float[] row = in.row(i);
            for (int j = 0; j < row.length; j++) {
                row[j] = (float) ReferenceGelu.value(row[j], form);
            }
            out.setRow(i, row);
        }
    }

    @Override
    public void geluBackward(Tensor pre, Tensor dy, Gelu form) {
        HostMatrix in = HostMatrix.of(pre);
        HostMatrix gradient = HostMatrix.of(dy);
        for (int i = 0; i < dy.rows(); i++) {
            float[] x = in.row(i);
            float[] row = gradient.row(i);
            for (int j = 0; j < row.length; j++) {
                row[j] = (float) (row[j] * ReferenceGelu.slope(x[j], form));
            }
            gradient.setRow(i, row);
        }
    }

    @Override
    public void swiGlu(Tensor gated, Tensor z) {
        ReferenceGate.forward(gated, z);
    }

    @Override
    public void swiGluBackward(Tensor gated, Tensor dz, Tensor dGated) {
        ReferenceGate.backward(gated, dz, dGated);
    }

    @Override
    public void biasTanh(Tensor y, Tensor bias) {
        addBias(y, bias);
        HostMatrix all = HostMatrix.of(y);
        for (int i = 0; i < y.rows(); i++) {
            float[] row = all.row(i);
            for (int j = 0; j < row.length; j++) {
                row[j] = (float) StrictMath.tanh(row[j]);
            }
            all.setRow(i, row);
        }
    }

    @Override
    public void tanhBackward(Tensor y, Tensor dy) {
        HostMatrix out = HostMatrix.of(y);
        HostMatrix gradient = HostMatrix.of(dy);
        for (int i = 0; i < dy.rows(); i++) {
            float[] t = out.row(i);
            float[] row = gradient.row(i);
            for (int j = 0; j < row.length; j++) {
                row[j] = (float) (row[j] * (1 - (double) t[j] * t[j]));
            }
            gradient.setRow(i, row);
        }
    }

    @Override
    public void geGlu(Tensor gated, Tensor z) {
        ReferenceGate.geGlu(gated, z);
    }

    @Override
    public void geGluBackward(Tensor gated, Tensor dz, Tensor dGated) {
        ReferenceGate.geGluBackward(gated, dz, dGated);
    }

    @Override
    public void retentionStates(
            Tensor qkv, Tensor states, RetentionShape shape, int context, TokenBlocks blocks) {
        new ReferenceRetention(qkv, states, shape, context, blocks).states();
    }

    @Override
    public void retention(
            Tensor qkv,
            Tensor states,
            Tensor y,
            RetentionShape shape,
            int context,
            TokenBlocks blocks) {
        new ReferenceRetention(qkv, states, shape, context, blocks).forward(y);
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
        new ReferenceRetention(qkv, states, shape, context, blocks).backward(dy, dQkv);
    }

    @Override
    public void retentionStateGradient(
            Tensor qkv,
            Tensor gradient,
            Tensor dy,
            RetentionShape shape,
            int context,
            TokenBlocks blocks) {
        new ReferenceRetention(qkv, gradient, shape, context, blocks).stateGradient(dy);
    }

    @Override
    public void gatedHeadNorm(Tensor x, @Nullable Tensor gate, Tensor y, Tensor r, double epsilon) {
        ReferenceGate.headNorm(x, gate, y, r, epsilon);
    }

    @Override
    public void gatedHeadNormBackward(
            Tensor dy,
            Tensor x,
            @Nullable Tensor gate,
            Tensor r,
            Tensor dx,
            @Nullable Tensor dGate) {
        ReferenceGate.headNormBackward(dy, x, gate, r, dx, dGate);
    }

    @Override
    public void dropout(Tensor x, Tensor rowKeys, DropoutMask mask, Tensor y, boolean accumulate) {
        MemorySegment keys = rowKeys.contents();
        HostMatrix from = HostMatrix.of(x);
        HostMatrix to = HostMatrix.of(y);
        for (int i = 0; i < x.rows(); i++) {
            long low = keys.getAtIndex(ValueLayout.JAVA_INT, 2L * i) & 0xFFFF_FFFFL;
            long key = low | (long) keys.getAtIndex(ValueLayout.JAVA_INT, 2L * i + 1) << 32;
            float[] row = from.row(i);
            float[] before = to.row(i);
            for (int j = 0; j < row.length; j++) {
                float value = mask.keeps(key, j) ? row[j] * mask.scale() : 0;
                row[j] = accumulate ? before[j] + value : value;
            }
            to.setRow(i, row);
        }
    }

    @Override
    public void rotate(Tensor x, Tensor turns, boolean back) {
        rotate(x, turns, back, 1, turns.columns() / 2);
    }

    @Override
    public void rotateNeighbours(Tensor x, Tensor turns, boolean back) {
        rotate(x, turns, back, 2, 1);
    }

    /**
     * Turns pairs.
     *
     * @param step columns from one pair to the next
     * @param apart columns from the first of a pair to the second
     */
    private static void rotate(Tensor x, Tensor turns, boolean back, int step, int apart) {
        HostMatrix rows = HostMatrix.of(x);
        int size = turns.columns();
        int half = size / 2;
        for (int i = 0; i < x.rows(); i++) {
            float[] row = rows.row(i);
            float[] turn = HostMatrix.of(turns).row(i % turns.rows());
            for (int first = 0; first < row.length; first += size) {
                for (int j = 0; j < half; j++) {
                    int at = first + j * step;
                    double sine = back ? -turn[half + j] : turn[half + j];
                    double x1 = row[at];
                    double x2 = row[at + apart];
                    row[at] = (float) (x1 * turn[j] - x2 * sine);
                    row[at + apart] = (float) (x2 * turn[j] + x1 * sine);
                }
            }
            rows.setRow(i, row);
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
        new ReferenceAttention(qkv, y, logSumExp, shape, context, blocks).forward();
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
        new ReferenceAttention(qkv, y, logSumExp, shape, context, blocks).backward(dy, dQkv);
    }

    @Override
    public void attentionToEarlier(
            DType multiply,
            Tensor q,
            Tensor keyValues,
            Tensor y,
            Tensor logSumExp,
            EarlierKeys keys) {
        new ReferenceEarlierAttention(q, keyValues, y, logSumExp, keys).forward();
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
        new ReferenceEarlierAttention(q, keyValues, y, logSumExp, keys)
                .backward(dy, dq, dKeyValues);
    }

    @Override
    public void softmaxPart(
            Tensor logits, Tensor targets, TokenRange range, Tensor part, boolean gradient) {
        IndexRules.inRange("softmaxPart", "targets", targets, range.vocabulary());
        HostMatrix out = HostMatrix.of(logits);
        HostMatrix target = HostMatrix.of(targets);
        HostMatrix numbers = HostMatrix.of(part);
        for (int i = 0; i < logits.rows(); i++) {
            int right = range.row(target.getInt(0, i), logits.columns());
            float[] row = out.row(i);
            numbers.set(0, 3 * i + 2, right < 0 ? 0 : row[right]);
            double max = Double.NEGATIVE_INFINITY;
            for (float logit : row) {
                max = Math.max(max, logit);
            }
            double sum = 0;
            for (int j = 0; j < row.length; j++) {
                double e = StrictMath.exp(row[j] - max);
                sum += e;
                row[j] = (float) e;
            }
            if (gradient) {
                out.setRow(i, row);
            }
            numbers.set(0, 3 * i, (float) max);
            numbers.set(0, 3 * i + 1, (float) sum);
        }
    }

    @Override
    public void crossEntropy(
            Tensor parts,
            int shard,
            Tensor logits,
            Tensor targets,
            TokenRange range,
            Tensor losses,
            float gradientScale) {
        HostMatrix numbers = HostMatrix.of(parts);
        HostMatrix out = HostMatrix.of(logits);
        HostMatrix target = HostMatrix.of(targets);
        HostMatrix loss = HostMatrix.of(losses);
        for (int i = 0; i < logits.rows(); i++) {
            double max = Double.NEGATIVE_INFINITY;
            for (int s = 0; s < parts.rows(); s++) {
                max = Math.max(max, numbers.get(s, 3 * i));
            }
            double sum = 0;
            double rightLogit = 0;
            for (int s = 0; s < parts.rows(); s++) {
                sum += numbers.get(s, 3 * i + 1) * StrictMath.exp(numbers.get(s, 3 * i) - max);
                rightLogit += numbers.get(s, 3 * i + 2);
            }
            loss.set(0, i, (float) (StrictMath.log(sum) + max - rightLogit));
            double share = StrictMath.exp(numbers.get(shard, 3 * i) - max) / sum;
            int right = range.row(target.getInt(0, i), logits.columns());
            if (gradientScale == 0) {
                continue;
            }
            float[] row = out.row(i);
            for (int j = 0; j < row.length; j++) {
                double probability = row[j] * share;
                row[j] = (float) ((probability - (j == right ? 1 : 0)) * gradientScale);
            }
            out.setRow(i, row);
        }
    }

    @Override
    public void encode(RowCodec codec, Tensor x, Tensor coded) {
        HostMatrix from = HostMatrix.of(x);
        HostMatrix to = HostMatrix.of(coded);
        for (int i = 0; i < x.rows(); i++) {
            int[] words = ReferenceCodec.encode(codec, from.row(i));
            for (int j = 0; j < words.length; j++) {
                to.setInt(i, j, words[j]);
            }
        }
    }

    @Override
    public void decode(RowCodec codec, Tensor coded, Tensor x) {
        HostMatrix from = HostMatrix.of(coded);
        HostMatrix to = HostMatrix.of(x);
        int[] words = new int[coded.columns()];
        for (int i = 0; i < x.rows(); i++) {
            for (int j = 0; j < words.length; j++) {
                words[j] = from.getInt(i, j);
            }
            to.setRow(i, ReferenceCodec.decode(codec, words, x.columns()));
        }
    }

    @Override
    public boolean foldGradient(Tensor gradient, Tensor sum, float limit, boolean accumulate) {
        HostMatrix from = HostMatrix.of(gradient);
        HostMatrix to = HostMatrix.of(sum);
        boolean within = true;
        for (int i = 0; i < gradient.rows(); i++) {
            float[] numbers = from.row(i);
            long[] sums = accumulate ? to.longs(i) : new long[numbers.length];
            for (int j = 0; j < numbers.length; j++) {
                within &= Math.abs(numbers[j]) <= limit;
                sums[j] += FixedPoint.of(numbers[j]);
            }
            to.setLongs(i, sums);
        }
        zero(gradient);
        return within;
    }

    @Override
    public void unfoldGradient(Tensor sum, Tensor gradient) {
        HostMatrix from = HostMatrix.of(sum);
        HostMatrix to = HostMatrix.of(gradient);
        for (int i = 0; i < sum.rows(); i++) {
            long[] sums = from.longs(i);
            float[] numbers = new float[sums.length];
            for (int j = 0; j < sums.length; j++) {
                numbers[j] = FixedPoint.value(sums[j]);
            }
            to.setRow(i, numbers);
        }
    }

    @Override
    public void zero(Tensor x) {
        HostMatrix.of(x).setAllRows(new float[x.rows()][x.columns()]);
    }

    @Override
    public void add(Tensor x, Tensor y) {
        HostMatrix in = HostMatrix.of(x);
        HostMatrix out = HostMatrix.of(y);
        for (int i = 0; i < x.rows(); i++) {
            if (x.type() == DType.I64) {
                long[] sums = out.longs(i);
                long[] values = in.longs(i);
                for (int j = 0; j < sums.length; j++) {
                    sums[j] += values[j];
                }
                out.setLongs(i, sums);
                continue;
            }
            float[] row = out.row(i);
            addTo(row, in.row(i));
            out.setRow(i, row);
        }
    }

    @Override
    public void subtract(Tensor x, Tensor y) {
        HostMatrix in = HostMatrix.of(x);
        HostMatrix out = HostMatrix.of(y);
        for (int i = 0; i < x.rows(); i++) {
            for (int j = 0; j < x.columns(); j++) {
                out.set(i, j, out.get(i, j) - in.get(i, j));
            }
        }
    }

    @Override
    public void blend(float a, Tensor x, float b, Tensor y) {
        HostMatrix in = HostMatrix.of(x);
        HostMatrix out = HostMatrix.of(y);
        for (int i = 0; i < x.rows(); i++) {
            for (int j = 0; j < x.columns(); j++) {
                out.set(i, j, Math.fma(a, in.get(i, j), b * out.get(i, j)));
            }
        }
    }

    @Override
    public void copy(Tensor x, Tensor y) {
        HostMatrix in = HostMatrix.of(x);
        HostMatrix out = HostMatrix.of(y);
        if (x.type() == DType.I64) {
            for (int i = 0; i < x.rows(); i++) {
                out.setLongs(i, in.longs(i)); // not every long is a float
            }
            return;
        }
        if (x.type() != DType.I32) {
            out.setAllRows(in.allRows());
            return;
        }
        for (int i = 0; i < x.rows(); i++) {
            for (int j = 0; j < x.columns(); j++) {
                out.setInt(i, j, in.getInt(i, j)); // not every int is a float
            }
        }
    }

    @Override
    public double squaredNorm(Tensor x) {
        HostMatrix in = HostMatrix.of(x);
        double sum = 0;
        for (int i = 0; i < x.rows(); i++) {
            for (float value : in.row(i)) {
                sum += (double) value * value;
            }
        }
        return sum;
    }

    @Override
    public boolean allFinite(Tensor x) {
        HostMatrix in = HostMatrix.of(x);
        for (int i = 0; i < x.rows(); i++) {
            for (float value : in.row(i)) {
                if (!Float.isFinite(value)) {
                    return false;
                }
            }
        }
        return true;
    }

    @Override
    public void adamW(Tensor weight, Tensor gradient, Tensor m, Tensor v, AdamWStep step) {
        HostMatrix weights = HostMatrix.of(weight);
        HostMatrix gradients = HostMatrix.of(gradient);
        HostMatrix first = HostMatrix.of(m);
        HostMatrix second = HostMatrix.of(v);
        if (m.type().isDynamic()) {
            adamWOfBlocks(weights, gradients, first, second, step);
            return;
        }
        for (int i = 0; i < weight.rows(); i++) {
            float[] w = weights.row(i);
            float[] means = first.row(i);
            float[] squares = second.row(i);
            update(w, gradients.row(i), 0, means, squares, step);
            weights.setRow(i, w);
            first.setRow(i, means);
            second.setRow(i, squares);
            gradients.setRow(i, new float[w.length]);
        }
    }

    private static void adamWOfBlocks(
            HostMatrix weights,
            HostMatrix gradients,
            HostMatrix first,
            HostMatrix second,
            AdamWStep step) {
        float[] w = weights.row(0);
        float[] gradient = gradients.row(0);
        for (int block = 0; block < first.rows(); block++) {
            float[] means = first.row(block);
            float[] squares = second.row(block);
            update(w, gradient, block * Dynamic8.BLOCK, means, squares, step);
            first.setRow(block, means);
            second.setRow(block, squares);
        }
        weights.setRow(0, w);
        gradients.setRow(0, new float[w.length]);
    }

    /**
     * Updates some weights.
     *
     * @param from the first of them, to which the first of the moments belong
     */
    private static void update(
            float[] w, float[] gradient, int from, float[] means, float[] squares, AdamWStep step) {
        double firstBias = 1 - StrictMath.pow(step.beta1(), step.t());
        double secondBias = 1 - StrictMath.pow(step.beta2(), step.t());
        for (int j = 0; j < means.length && from + j < w.length; j++) {
            double g = gradient[from + j] * step.gradientScale();
            double mean = step.beta1() * means[j] + (1 - step.beta1()) * g;
            double square = step.beta2() * squares[j] + (1 - step.beta2()) * g * g;
            double update = mean / firstBias / (Math.sqrt(square / secondBias) + step.epsilon());
            double kept = w[from + j] * (1 - step.learningRate() * step.decay());
            w[from + j] = (float) (kept - step.learningRate() * update);
            means[j] = (float) mean;
            squares[j] = (float) square;
        }
    }

    @Override
    public void finish() {
        // every call returns with its results
    }
}
