package dev.penstock.cuda.kernels;

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
    private final int width;
    private final int heads;
    private final int headWidth;
    private final double scale;

    ReferenceEarlierAttention(Tensor q, Tensor keyValues, Tensor y, Tensor logSumExp, int heads) {
        this.q = HostMatrix.of(q).allRows();
        this.keyValues = HostMatrix.of(keyValues).allRows();
        this.y = HostMatrix.of(y);
        this.logSumExp = HostMatrix.of(logSumExp);
        this.width = y.columns();
        this.heads = heads;
        this.headWidth = width / heads;
        this.scale = 1 / Math.sqrt(headWidth);
    }

    void forward() {
        for (int query = 0; query < q.length; query++) {
            for (int head = 0; head < heads; head++) {
                forward(query, head);
            }
        }
    }

    private void forward(int query, int head) {
        double[] scores = scores(query, head);
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
        for (int j = head * headWidth; j < (head + 1) * headWidth; j++) {
            double value = kept * y.get(query, j);
            for (int key = 0; key < scores.length; key++) {
                value += probabilities[key] * keyValues[key][width + j];
            }
            y.set(query, j, (float) value);
        }
    }

    void backward(Tensor dy, Tensor dq, Tensor dKeyValues) {
        float[][] gradient = HostMatrix.of(dy).allRows();
        HostMatrix dQueries = HostMatrix.of(dq);
        float[][] out = HostMatrix.of(dKeyValues).allRows();
        for (int query = q.length - 1; query >= 0; query--) {
            for (int head = 0; head < heads; head++) {
                backward(query, head, gradient, dQueries, out);
            }
        }
        HostMatrix.of(dKeyValues).setAllRows(out);
    }

    private void backward(
            int query, int head, float[][] gradient, HostMatrix dQueries, float[][] out) {
        int from = head * headWidth;
        double[] scores = scores(query, head);
        double[] dq = new double[headWidth];
        double delta = 0;
        for (int j = from; j < from + headWidth; j++) {
            delta += (double) gradient[query][j] * y.get(query, j);
        }
        for (int key = 0; key < scores.length; key++) {
            double probability = StrictMath.exp(scores[key] - logSumExp.get(query, head));
            double dp = 0;
            for (int j = from; j < from + headWidth; j++) {
                dp += (double) gradient[query][j] * keyValues[key][width + j];
            }
            double ds = probability * (dp - delta) * scale;
            for (int j = 0; j < headWidth; j++) {
                dq[j] += ds * keyValues[key][from + j];
                out[key][from + j] += (float) (ds * q[query][from + j]);
                out[key][width + from + j] += (float) (probability * gradient[query][from + j]);
            }
        }
        for (int j = 0; j < headWidth; j++) {
            dQueries.add(query, from + j, (float) dq[j]);
        }
    }

    private double[] scores(int query, int head) {
        double[] scores = new double[keyValues.length];
        for (int key = 0; key < scores.length; key++) {
            double dot = 0;
            for (int j = head * headWidth; j < (head + 1) * headWidth; j++) {
                dot += (double) q[query][j] * keyValues[key][j];
            }
            scores[key] = dot * scale;
        }
        return scores;
    }
}
