package dev.penstock.cuda.kernels;

import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;

/**
 * Causal attention one query at a time, scores in double. For a query with scores {@code s = scale
 * * q . k} over the keys that it sees:
 *
 * <pre>
 *   p = exp(s - logSumExp)       y = sum p v
 *   dp = dy . v                  ds = p * (dp - dy . y)
 *   dq = scale * sum ds k        dk += scale * ds q        dv += p dy
 * </pre>
 *
 * The backward takes queries last first, whatever the slices, and of each query one head after the
 * other, so that sums over queries do not depend on the slicing.
 */
final class ReferenceAttention {
    private final float[][] qkv;
    private final HostMatrix y;
    private final HostMatrix logSumExp;
    private final AttentionShape shape;
    private final int headSize;
    private final int context;
    private final TokenBlocks blocks;

    ReferenceAttention(
            Tensor qkv,
            Tensor y,
            Tensor logSumExp,
            AttentionShape shape,
            int context,
            TokenBlocks blocks) {
        this.qkv = HostMatrix.of(qkv).allRows();
        this.y = HostMatrix.of(y);
        this.logSumExp = HostMatrix.of(logSumExp);
        this.shape = shape;
        this.headSize = shape.headSize();
        this.context = context;
        this.blocks = blocks;
    }

    void forward() {
        for (int sequence = 0; sequence < blocks.sequences(); sequence++) {
            for (int token = 0; token < blocks.tokens(); token++) {
                for (int head = 0; head < shape.heads(); head++) {
                    forward(sequence, token, head);
                }
            }
        }
    }

    private void forward(int sequence, int token, int head) {
        int row = sequence * blocks.tokens() + token;
        double[] scores = scores(sequence, token, head);
        double max = Double.NEGATIVE_INFINITY;
        for (double score : scores) {
            max = Math.max(max, score);
        }
        double sum = 0;
        for (double score : scores) {
            sum += StrictMath.exp(score - max);
        }
        double total = max + StrictMath.log(sum);
        logSumExp.set(row, head, (float) total);
        double[] probabilities = new double[scores.length];
        for (int key = 0; key < scores.length; key++) {
            probabilities[key] = StrictMath.exp(scores[key] - total);
        }
        int first = firstKey(token);
        for (int j = 0; j < headSize; j++) {
            double value = 0;
            for (int key = 0; key < scores.length; key++) {
                value += probabilities[key] * value(sequence, first + key, head, j);
            }
            y.set(row, head * headSize + j, (float) value);
        }
    }

    void backward(Tensor dy, Tensor dQkv) {
        float[][] gradient = HostMatrix.of(dy).allRows();
        float[][] out = HostMatrix.of(dQkv).allRows();
        for (int sequence = 0; sequence < blocks.sequences(); sequence++) {
            for (int token = blocks.tokens() - 1; token >= 0; token--) {
                for (int head = 0; head < shape.heads(); head++) {
                    backward(sequence, token, head, gradient, out);
                }
            }
        }
        HostMatrix.of(dQkv).setAllRows(out);
    }

    private void backward(int sequence, int token, int head, float[][] gradient, float[][] out) {
        int row = sequence * blocks.tokens() + token;
        int column = head * headSize;
        int keyColumn = shape.queryColumns() + shape.keyHeadOf(head) * headSize;
        int valueColumn = keyColumn + shape.keyColumns();
        int first = firstKey(token);
        double[] scores = scores(sequence, token, head);
        double[] dq = new double[headSize];
        double delta = 0;
        for (int j = 0; j < headSize; j++) {
            delta += (double) gradient[row][column + j] * y.get(row, column + j);
        }
        for (int key = 0; key < scores.length; key++) {
            double probability = StrictMath.exp(scores[key] - logSumExp.get(row, head));
            double dp = 0;
            for (int j = 0; j < headSize; j++) {
                dp += (double) gradient[row][column + j] * value(sequence, first + key, head, j);
            }
            double ds = probability * (dp - delta) * shape.scale();
            float[] keyRow = out[sequence * context + first + key];
            for (int j = 0; j < headSize; j++) {
                dq[j] += ds * key(sequence, first + key, head, j);
                float dk = (float) (ds * query(sequence, token, head, j));
                keyRow[keyColumn + j] += dk;
                float dv = (float) (probability * gradient[row][column + j]);
                keyRow[valueColumn + j] += dv;
            }
        }
        int queryRow = sequence * context + blocks.firstToken() + token;
        for (int j = 0; j < headSize; j++) {
            out[queryRow][column + j] = (float) dq[j];
        }
    }

    private int firstKey(int token) {
        return shape.firstKey(blocks.firstToken() + token);
    }

    private int endKey(int token) {
        return shape.endKey(blocks.firstToken() + token, blocks.firstToken() + blocks.tokens());
    }

    /** Scores of a query against all keys that it sees. */
    private double[] scores(int sequence, int token, int head) {
        int first = firstKey(token);
        double[] scores = new double[endKey(token) - first];
        for (int key = 0; key < scores.length; key++) {
            double dot = 0;
            for (int j = 0; j < headSize; j++) {
                dot += query(sequence, token, head, j) * key(sequence, first + key, head, j);
            }
            scores[key] = dot * shape.scale();
        }
        return scores;
    }

    private double query(int sequence, int token, int head, int j) {
        int row = sequence * context + blocks.firstToken() + token;
        return qkv[row][head * headSize + j];
    }

    private double key(int sequence, int token, int head, int j) {
        int column = shape.queryColumns() + shape.keyHeadOf(head) * headSize;
        return qkv[sequence * context + token][column + j];
    }

    private double value(int sequence, int token, int head, int j) {
        int column = shape.queryColumns() + shape.keyColumns() + shape.keyHeadOf(head) * headSize;
        return qkv[sequence * context + token][column + j];
    }
}
