package dev.penstock.cuda.kernels;

import dev.penstock.cuda.device.RetentionShape;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;

/**
 * Retention one token at a time, in double inside a chunk (the recurrent form, arXiv 2307.08621,
 * equation 6). With the state S before a token, its decay g and factor f:
 *
 * <pre>
 *   S' = g S + k^T v            y = f q S'
 *   dS' += f q^T dy             dq = f S' dy      dk = dS' v      dv = k dS'      dS = g dS'
 * </pre>
 */
final class ReferenceRetention {
    private final float[][] qkv;
    private final float[][] states;
    private final Tensor keptStates;
    private final RetentionShape shape;
    private final int n;
    private final int m;
    private final int context;
    private final TokenBlocks blocks;

    ReferenceRetention(
            Tensor qkv, Tensor states, RetentionShape shape, int context, TokenBlocks blocks) {
        this.qkv = HostMatrix.of(qkv).allRows();
        this.states = HostMatrix.of(states).allRows();
        this.keptStates = states;
        this.shape = shape;
        this.n = shape.keySize();
        this.m = shape.valueSize();
        this.context = context;
        this.blocks = blocks;
    }

    /** One head's part of one chunk of one sequence. */
    private interface Work {
        void run(int head, int sequence, int chunk);
    }

    void states() {
        forEach(
                true,
                (head, sequence, chunk) -> {
                    double[][][] after = statesOf(head, sequence, chunk);
                    store(after[after.length - 1], head, sequence, chunk + 1);
                });
        HostMatrix.of(keptStates).setAllRows(states);
    }

    void forward(Tensor y) {
        HostMatrix out = HostMatrix.of(y);
        forEach(
                true,
                (head, sequence, chunk) -> {
                    double[][][] after = statesOf(head, sequence, chunk);
                    for (int i = 0; i < after.length - 1; i++) {
                        int token = firstOf(chunk) + i;
                        double factor = factor(head, token);
                        for (int c = 0; c < m; c++) {
                            double sum = 0;
                            for (int r = 0; r < n; r++) {
                                sum += query(head, sequence, token, r) * after[i + 1][r][c];
                            }
                            int row = sequence * blocks.tokens() + token - blocks.firstToken();
                            out.set(row, head * m + c, (float) (factor * sum));
                        }
                    }
                });
    }

    void backward(Tensor dy, Tensor dQkv) {
        float[][] gradient = HostMatrix.of(dy).allRows();
        float[][] out = HostMatrix.of(dQkv).allRows();
        forEach(
                false,
                (head, sequence, chunk) -> {
                    double[][][] after = statesOf(head, sequence, chunk);
                    double[][] dState = load(head, sequence, chunk + 1);
                    for (int i = after.length - 2; i >= 0; i--) {
                        int token = firstOf(chunk) + i;
                        float[] dRow =
                                gradient[sequence * blocks.tokens() + token - blocks.firstToken()];
                        backward(head, sequence, token, after[i + 1], dState, dRow, out);
                    }
                    store(dState, head, sequence, chunk);
                });
        HostMatrix.of(dQkv).setAllRows(out);
        HostMatrix.of(keptStates).setAllRows(states);
    }

    /** The states are one for each sequence, the gradient. */
    void stateGradient(Tensor dy) {
        float[][] gradient = HostMatrix.of(dy).allRows();
        forEach(
                false,
                (head, sequence, chunk) -> {
                    double[][] dState = load(head, sequence, 0);
                    for (int i = blocks.rowsOf(index(chunk)) - 1; i >= 0; i--) {
                        int token = firstOf(chunk) + i;
                        int row = sequence * blocks.tokens() + token - blocks.firstToken();
                        double factor = factor(head, token);
                        for (int r = 0; r < n; r++) {
                            double q = factor * query(head, sequence, token, r);
                            for (int c = 0; c < m; c++) {
                                dState[r][c] += q * gradient[row][head * m + c];
                                dState[r][c] *= shape.decays().get(head);
                            }
                        }
                    }
                    store(dState, head, sequence, 0);
                });
        HostMatrix.of(keptStates).setAllRows(states);
    }

    private void backward(
            int head,
            int sequence,
            int token,
            double[][] state,
            double[][] dState,
            float[] dRow,
            float[][] out) {
        double factor = factor(head, token);
        float[] dQkv = out[row(sequence, token)];
        double[] dv = new double[m];
        for (int r = 0; r < n; r++) {
            double q = query(head, sequence, token, r);
            double k = key(head, sequence, token, r);
            double dq = 0;
            double dk = 0;
            for (int c = 0; c < m; c++) {
                double dOut = factor * dRow[head * m + c];
                dState[r][c] += q * dOut;
                dq += state[r][c] * dOut;
                dk += dState[r][c] * value(head, sequence, token, c);
                dv[c] += k * dState[r][c];
                dState[r][c] *= shape.decays().get(head);
            }
            dQkv[head * n + r] = (float) dq;
            dQkv[shape.queryColumns() + head * n + r] = (float) dk;
        }
        for (int c = 0; c < m; c++) {
            dQkv[2 * shape.queryColumns() + head * m + c] = (float) dv[c];
        }
    }

    private void forEach(boolean rising, Work work) {
        int chunks = blocks.blocksPerSequence();
        for (int step = 0; step < chunks; step++) {
            for (int sequence = 0; sequence < blocks.sequences(); sequence++) {
                for (int head = 0; head < shape.heads(); head++) {
                    work.run(head, sequence, rising ? step : chunks - 1 - step);
                }
            }
        }
    }

    /** Position of a chunk's first token. */
    private int firstOf(int chunk) {
        return blocks.firstToken() + blocks.firstRow(index(chunk));
    }

    /** Number of a chunk of the first sequence in the order of summation. */
    private int index(int chunk) {
        return (blocks.blocksPerSequence() - 1 - chunk) * blocks.sequences();
    }

    /** States before the chunk's first token and after each of its tokens. */
    private double[][][] statesOf(int head, int sequence, int chunk) {
        double[][][] all = new double[blocks.rowsOf(index(chunk)) + 1][n][m];
        all[0] = load(head, sequence, chunk);
        for (int i = 0; i < all.length - 1; i++) {
            int token = firstOf(chunk) + i;
            for (int r = 0; r < n; r++) {
                for (int c = 0; c < m; c++) {
                    all[i + 1][r][c] =
                            shape.decays().get(head) * all[i][r][c]
                                    + key(head, sequence, token, r)
                                            * value(head, sequence, token, c);
                }
            }
        }
        return all;
    }

    private double[][] load(int head, int sequence, int chunk) {
        float[] row = states[chunk * blocks.sequences() + sequence];
        double[][] state = new double[n][m];
        for (int i = 0; i < n * m; i++) {
            state[i / m][i % m] = row[head * n * m + i];
        }
        return state;
    }

    private void store(double[][] state, int head, int sequence, int chunk) {
        float[] row = states[chunk * blocks.sequences() + sequence];
        for (int i = 0; i < n * m; i++) {
            row[head * n * m + i] = (float) state[i / m][i % m];
        }
    }

    private double factor(int head, int token) {
        return shape.scale() / Math.sqrt(shape.weightOf(head, token));
    }

    /** Row of a token in {@code qkv}. */
    private int row(int sequence, int token) {
        boolean alone = context == blocks.tokens();
        return sequence * context + token - (alone ? blocks.firstToken() : 0);
    }

    private double query(int head, int sequence, int token, int column) {
        return qkv[row(sequence, token)][head * n + column];
    }

    private double key(int head, int sequence, int token, int column) {
        return qkv[row(sequence, token)][shape.queryColumns() + head * n + column];
    }

    private double value(int head, int sequence, int token, int column) {
        return qkv[row(sequence, token)][2 * shape.queryColumns() + head * m + column];
    }
}
