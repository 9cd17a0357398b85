package dev.penstock.cuda.kernels;

import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.EarlierKeys;
import dev.penstock.cuda.device.Tensor;

/**
 * Attention of queries to a block of keys that all come before them, one query at a time in double.
 * With the result {@code y} and {@code logSumExp} over the keys so far, and those of this block:
 *
 * <pre>
 *   all = log(exp(logSumExp) + exp(logSumExp of the block))
 *   y = exp(logSumExp - all) y + exp(logSumExp of the block - all) (y of the block)
 * </pre>
 *
 * The backward is that of {@link ReferenceAttention}.
 */
final class ReferenceEarlierAttention {
    private final float[][] q;
    private final float[][] keyValues;
    private final HostMatrix y;
    private final HostMatrix logSumExp;
    private final EarlierKeys keys;
    private final AttentionShape shape;
    private final int headSize;

    ReferenceEarlierAttention(
            Tensor q, Tensor keyValues, Tensor y, Tensor logSumExp, EarlierKeys keys) {
        this.q = HostMatrix.of(q).allRows();
        this.keyValues = HostMatrix.of(keyValues).allRows();
        this.y = HostMatrix.of(y);
        this.logSumExp = HostMatrix.of(logSumExp);
        this.keys = keys;
        this.shape = keys.shape();
        this.headSize = shape.headSize();
    }

    void forward() {
        for (int query = 0; query < q.length; query++) {
            for (int head = 0; head < shape.heads(); head++) {
                forward(query, head);
            }
        }
    }

    private void forward(int query, int head) {
        int first = keys.firstKey(query);
        double[] scores = scores(query, head);
        if (scores.length == 0) {
            return;
        }
        double before = logSumExp.get(query, head);
        double max = before;
        for (double score : scores) {
            max = Math.max(max, score);
        }
        double sum = StrictMath.exp(before - max);
        for (double score : scores) {
            sum += StrictMath.exp(score - max);
        }
        double all = max + StrictMath.log(sum);
        logSumExp.set(query, head, (float) all);
        double kept = StrictMath.exp(before - all);
        double[] probabilities = new double[scores.length];
        for (int key = 0; key < scores.length; key++) {
            probabilities[key] = StrictMath.exp(scores[key] - all);
        }
        int from = head * headSize;
        for (int j = 0; j < headSize; j++) {
            double value = kept * y.get(query, from + j);
            for (int key = 0; key < scores.length; key++) {
                value += probabilities[key] * keyValues[first + key][valueColumn(head) + j];
            }
            y.set(query, from + j, (float) value);
        }
    }

    void backward(Tensor dy, Tensor dq, Tensor dKeyValues) {
        float[][] gradient = HostMatrix.of(dy).allRows();
        HostMatrix dQueries = HostMatrix.of(dq);
        float[][] out = HostMatrix.of(dKeyValues).allRows();
        for (int query = q.length - 1; query >= 0; query--) {
            for (int head = 0; head < shape.heads(); head++) {
                backward(query, head, gradient, dQueries, out);
            }
        }
        HostMatrix.of(dKeyValues).setAllRows(out);
    }

    private void backward(
            int query, int head, float[][] gradient, HostMatrix dQueries, float[][] out) {
        int from = head * headSize;
        int first = keys.firstKey(query);
        int keyColumn = keyColumn(head);
        int valueColumn = valueColumn(head);
        double[] scores = scores(query, head);
        double[] dq = new double[headSize];
        double delta = 0;
        for (int j = from; j < from + headSize; j++) {
            delta += (double) gradient[query][j] * y.get(query, j);
        }
        for (int key = 0; key < scores.length; key++) {
            double probability = StrictMath.exp(scores[key] - logSumExp.get(query, head));
            float[] row = keyValues[first + key];
            float[] sums = out[first + key];
            double dp = 0;
            for (int j = 0; j < headSize; j++) {
                dp += (double) gradient[query][from + j] * row[valueColumn + j];
            }
            double ds = probability * (dp - delta) * shape.scale();
            for (int j = 0; j < headSize; j++) {
                dq[j] += ds * row[keyColumn + j];
                sums[keyColumn + j] += (float) (ds * q[query][from + j]);
                sums[valueColumn + j] += (float) (probability * gradient[query][from + j]);
            }
        }
        for (int j = 0; j < headSize; j++) {
            dQueries.add(query, from + j, (float) dq[j]);
        }
    }

    private int keyColumn(int head) {
        return shape.keyHeadOf(head) * headSize;
    }

    private int valueColumn(int head) {
        return shape.keyColumns() + keyColumn(head);
    }

    /** Scores of a query against the keys that it sees, which may be none. */
    private double[] scores(int query, int head) {
        int first = keys.firstKey(query);
        double[] scores = new double[Math.max(0, keyValues.length - first)];
        for (int key = 0; key < scores.length; key++) {
            double dot = 0;
            for (int j = 0; j < headSize; j++) {
                double part = q[query][head * headSize + j];
                dot += part * keyValues[first + key][keyColumn(head) + j];
            }
            scores[key] = dot * shape.scale();
        }
        return scores;
    }
}
