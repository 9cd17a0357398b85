package dev.penstock.cuda;

import java.util.Arrays;

/** The forward ops again, in double precision, written exactly as the formulas. */
final class Truth {
    private Truth() {}

    static double[][] transpose(double[][] a) {
        double[][] t = new double[a[0].length][a.length];
        for (int i = 0; i < a.length; i++) {
            for (int j = 0; j < a[0].length; j++) {
                t[j][i] = a[i][j];
            }
        }
        return t;
    }

    static double[][] product(double[][] a, double[][] b) {
        double[][] c = new double[a.length][b[0].length];
        for (int i = 0; i < a.length; i++) {
            for (int p = 0; p < b.length; p++) {
                for (int j = 0; j < b[0].length; j++) {
                    c[i][j] += a[i][p] * b[p][j];
                }
            }
        }
        return c;
    }

    /** To 8 significant bits, ties to even, by scaling: independent of bit tricks. */
    static double[][] roundedToBFloat16(double[][] a) {
        double[][] r = new double[a.length][a[0].length];
        for (int i = 0; i < a.length; i++) {
            for (int j = 0; j < a[0].length; j++) {
                double unit = Math.scalb(1.0, Math.getExponent(a[i][j]) - 7);
                r[i][j] = a[i][j] == 0 ? 0 : Math.rint(a[i][j] / unit) * unit;
            }
        }
        return r;
    }

    static double[][] layerNorm(double[][] x, double[] gain, double[] bias) {
        double[][] y = new double[x.length][x[0].length];
        for (int i = 0; i < x.length; i++) {
            double mean = mean(x[i]);
            double deviation = Math.sqrt(variance(x[i]) + 1e-5);
            for (int j = 0; j < x[i].length; j++) {
                y[i][j] = (x[i][j] - mean) / deviation * gain[j] + bias[j];
            }
        }
        return y;
    }

    static double mean(double[] x) {
        double sum = 0;
        for (double value : x) {
            sum += value;
        }
        return sum / x.length;
    }

    static double variance(double[] x) {
        double mean = mean(x);
        double sum = 0;
        for (double value : x) {
            sum += (value - mean) * (value - mean);
        }
        return sum / x.length;
    }

    static double[][] gelu(double[][] x) {
        double[][] y = new double[x.length][x[0].length];
        for (int i = 0; i < x.length; i++) {
            for (int j = 0; j < x[i].length; j++) {
                double v = x[i][j];
                double u = Math.sqrt(2 / Math.PI) * (v + 0.044715 * v * v * v);
                y[i][j] = v / 2 * (1 + Math.tanh(u));
            }
        }
        return y;
    }

    /** Of whole sequences: qkv {@code [B*T, 3d]}, result {@code [B*T, d]}. */
    static double[][] attention(double[][] qkv, int sequences, int context, int heads) {
        int d = qkv[0].length / 3;
        double[][] y = new double[qkv.length][d];
        for (int b = 0; b < sequences; b++) {
            for (int t = 0; t < context; t++) {
                for (int h = 0; h < heads; h++) {
                    attend(qkv, y, b * context, t, h * (d / heads), d / heads);
                }
            }
        }
        return y;
    }

    private static void attend(
            double[][] qkv, double[][] y, int start, int token, int column, int width) {
        int d = qkv[0].length / 3;
        double[] weights = new double[token + 1];
        double sum = 0;
        for (int key = 0; key <= token; key++) {
            double dot = 0;
            for (int j = column; j < column + width; j++) {
                dot += qkv[start + token][j] * qkv[start + key][d + j];
            }
            weights[key] = Math.exp(dot / Math.sqrt(width));
            sum += weights[key];
        }
        for (int j = column; j < column + width; j++) {
            for (int key = 0; key <= token; key++) {
                y[start + token][j] += weights[key] / sum * qkv[start + key][2 * d + j];
            }
        }
    }

    /**
     * Attention of one head to one sequence, and its gradients.
     *
     * @param y {@code [T, w]}
     * @param dQkv {@code [T, 3w]}
     */
    record HeadGradients(double[][] y, double[][] dQkv) {}

    /**
     * By the closed form: {@code ds = p (dp - dy . y) / sqrt(w)} with {@code dp = dy . v}.
     *
     * @param qkv {@code [T, 3w]}
     * @param dy {@code [T, w]}
     */
    static HeadGradients attentionOfOneHead(double[][] qkv, double[][] dy) {
        int tokens = qkv.length;
        int width = dy[0].length;
        double[][] y = attention(qkv, 1, tokens, 1);
        double[][] dQkv = new double[tokens][3 * width];
        for (int query = 0; query < tokens; query++) {
            double[] scores = new double[query + 1];
            for (int key = 0; key <= query; key++) {
                scores[key] = dot(qkv[query], 0, qkv[key], width, width) / Math.sqrt(width);
            }
            double largest = Arrays.stream(scores).max().orElseThrow();
            double sum = Arrays.stream(scores).map(score -> Math.exp(score - largest)).sum();
            double delta = dot(dy[query], 0, y[query], 0, width);
            for (int key = 0; key <= query; key++) {
                double p = Math.exp(scores[key] - largest) / sum;
                double dp = dot(dy[query], 0, qkv[key], 2 * width, width);
                double ds = p * (dp - delta) / Math.sqrt(width);
                for (int j = 0; j < width; j++) {
                    dQkv[query][j] += ds * qkv[key][width + j];
                    dQkv[key][width + j] += ds * qkv[query][j];
                    dQkv[key][2 * width + j] += p * dy[query][j];
                }
            }
        }
        return new HeadGradients(y, dQkv);
    }

    private static double dot(double[] a, int fromA, double[] b, int fromB, int count) {
        double sum = 0;
        for (int j = 0; j < count; j++) {
            sum += a[fromA + j] * b[fromB + j];
        }
        return sum;
    }

    static double[] crossEntropy(double[][] logits, int[] targets) {
        double[] losses = new double[logits.length];
        for (int i = 0; i < logits.length; i++) {
            double sum = 0;
            for (double logit : logits[i]) {
                sum += Math.exp(logit);
            }
            losses[i] = Math.log(sum) - logits[i][targets[i]];
        }
        return losses;
    }
}
