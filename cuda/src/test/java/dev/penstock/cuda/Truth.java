package dev.penstock.cuda;

import dev.penstock.cuda.device.AttentionShape;
import java.util.Arrays;
import java.util.function.DoubleUnaryOperator;

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

    /** To 11 significant bits, and no finer than 2^-24, ties to even; within a half's range. */
    static double[][] roundedToHalf(double[][] a) {
        double[][] r = new double[a.length][a[0].length];
        for (int i = 0; i < a.length; i++) {
            for (int j = 0; j < a[0].length; j++) {
                double unit = Math.scalb(1.0, Math.max(Math.getExponent(a[i][j]) - 10, -24));
                r[i][j] = Math.rint(a[i][j] / unit) * unit;
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

    /** The share of the standard normal distribution below x: Simpson's rule over its density. */
    private static double below(double x) {
        int steps = 2_000;
        double step = x / steps;
        double sum = 0;
        for (int i = 0; i <= steps; i++) {
            int weight = i == 0 || i == steps ? 1 : i % 2 == 0 ? 2 : 4;
            sum += weight * Math.exp(-0.5 * i * step * i * step);
        }
        return 0.5 + sum * step / 3 / Math.sqrt(2 * Math.PI);
    }

    static double[][] exactGelu(double[][] x) {
        return map(x, v -> v * below(v));
    }

    static double[][] map(double[][] x, DoubleUnaryOperator function) {
        return Arrays.stream(x)
                .map(row -> Arrays.stream(row).map(function).toArray())
                .toArray(double[][]::new);
    }

    /** {@code x / sqrt(average of x^2 + epsilon) * gain} for every head as wide as the gain. */
    static double[][] rmsNorm(double[][] x, double[] gain, double epsilon) {
        double[][] y = new double[x.length][x[0].length];
        for (int i = 0; i < x.length; i++) {
            for (int j = 0; j < x[i].length; j++) {
                int first = j / gain.length * gain.length;
                double squares = 0;
                for (int other = first; other < first + gain.length; other++) {
                    squares += x[i][other] * x[i][other];
                }
                y[i][j] = x[i][j] / Math.sqrt(squares / gain.length + epsilon) * gain[j - first];
            }
        }
        return y;
    }

    /** {@code silu(a) * b}, a and b side by side. */
    static double[][] swiGlu(double[][] gated) {
        int width = gated[0].length / 2;
        double[][] z = new double[gated.length][width];
        for (int i = 0; i < z.length; i++) {
            for (int j = 0; j < width; j++) {
                z[i][j] = gated[i][j] / (1 + Math.exp(-gated[i][j])) * gated[i][width + j];
            }
        }
        return z;
    }

    /**
     * Attention of whole sequences, its log of sums, and its gradients for a given {@code dy},
     * query by query and key by key.
     *
     * @param y {@code [B*T, h*k]}
     * @param logSumExp {@code [B*T, h]}
     * @param dQkv {@code [B*T, (h+2g)*k]}
     */
    record Attended(double[][] y, double[][] logSumExp, double[][] dQkv) {}

    static Attended attention(double[][] qkv, double[][] dy, int context, AttentionShape shape) {
        int size = shape.headSize();
        double[][] y = new double[qkv.length][shape.heads() * size];
        double[][] logSumExp = new double[qkv.length][shape.heads()];
        double[][] dQkv = new double[qkv.length][qkv[0].length];
        for (int row = 0; row < qkv.length; row++) {
            for (int head = 0; head < shape.heads(); head++) {
                int q = head * size;
                int k = (shape.heads() + head * shape.keyHeads() / shape.heads()) * size;
                int v = k + shape.keyHeads() * size;
                int last = shape.bidirectional() ? row / context * context + context - 1 : row;
                int first = Math.max(row / context * context, row - (shape.window() - 1));
                double[] weights = new double[last + 1];
                double largest = Double.NEGATIVE_INFINITY;
                for (int key = first; key <= last; key++) {
                    weights[key] = shape.scale() * dot(qkv[row], q, qkv[key], k, size);
                    largest = Math.max(largest, weights[key]);
                }
                double sum = 0;
                for (int key = first; key <= last; key++) {
                    weights[key] = Math.exp(weights[key] - largest);
                    sum += weights[key];
                }
                logSumExp[row][head] = largest + Math.log(sum);
                for (int key = first; key <= last; key++) {
                    weights[key] /= sum;
                    for (int j = 0; j < size; j++) {
                        y[row][q + j] += weights[key] * qkv[key][v + j];
                    }
                }
                double delta = dot(dy[row], q, y[row], q, size);
                for (int key = first; key <= last; key++) {
                    double dp = dot(dy[row], q, qkv[key], v, size);
                    double ds = weights[key] * (dp - delta) * shape.scale();
                    for (int j = 0; j < size; j++) {
                        dQkv[row][q + j] += ds * qkv[key][k + j];
                        dQkv[key][k + j] += ds * qkv[row][q + j];
                        dQkv[key][v + j] += weights[key] * dy[row][q + j];
                    }
                }
            }
        }
        return new Attended(y, logSumExp, dQkv);
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
