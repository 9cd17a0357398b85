package dev.penstock.cuda.kernels;

import dev.penstock.cuda.device.Gelu;
import dev.penstock.cuda.device.Tensor;
import org.jspecify.annotations.Nullable;

/**
 * Gates. SwiGLU, {@code z = silu(a) * b} with {@code silu(a) = a s(a)}, {@code s(a) = 1 / (1 +
 * exp(-a))}:
 *
 * <pre>
 *   da = dz * b * s(a) * (1 + a * (1 - s(a)))        db = dz * silu(a)
 * </pre>
 */
final class ReferenceGate {
    private ReferenceGate() {}

    static void forward(Tensor gated, Tensor z) {
        int width = z.columns();
        for (int i = 0; i < z.rows(); i++) {
            float[] row = HostMatrix.of(gated).row(i);
            float[] result = new float[width];
            for (int j = 0; j < width; j++) {
                result[j] = (float) (row[j] * sigmoid(row[j]) * row[width + j]);
            }
            HostMatrix.of(z).setRow(i, result);
        }
    }

    static void backward(Tensor gated, Tensor dz, Tensor dGated) {
        int width = dz.columns();
        for (int i = 0; i < dz.rows(); i++) {
            float[] row = HostMatrix.of(gated).row(i);
            float[] slopes = HostMatrix.of(dz).row(i);
            float[] result = new float[2 * width];
            for (int j = 0; j < width; j++) {
                double a = row[j];
                double s = sigmoid(a);
                result[j] = (float) (slopes[j] * row[width + j] * s * (1 + a * (1 - s)));
                result[width + j] = (float) (slopes[j] * a * s);
            }
            HostMatrix.of(dGated).setRow(i, result);
        }
    }

    /**
     * GEGLU, {@code z = gelu(a) * b} with the exact form of {@link ReferenceGelu}: {@code da = dz *
     * b * gelu'(a)}, {@code db = dz * gelu(a)}.
     */
    static void geGlu(Tensor gated, Tensor z) {
        int width = z.columns();
        for (int i = 0; i < z.rows(); i++) {
            float[] row = HostMatrix.of(gated).row(i);
            float[] result = new float[width];
            for (int j = 0; j < width; j++) {
                result[j] = (float) (ReferenceGelu.value(row[j], Gelu.EXACT) * row[width + j]);
            }
            HostMatrix.of(z).setRow(i, result);
        }
    }

    static void geGluBackward(Tensor gated, Tensor dz, Tensor dGated) {
        int width = dz.columns();
        for (int i = 0; i < dz.rows(); i++) {
            float[] row = HostMatrix.of(gated).row(i);
            float[] slopes = HostMatrix.of(dz).row(i);
            float[] result = new float[2 * width];
            for (int j = 0; j < width; j++) {
                double a = row[j];
                result[j] =
                        (float) (slopes[j] * row[width + j] * ReferenceGelu.slope(a, Gelu.EXACT));
                result[width + j] = (float) (slopes[j] * ReferenceGelu.value(a, Gelu.EXACT));
            }
            HostMatrix.of(dGated).setRow(i, result);
        }
    }

    /** The norm of each head and the gate behind retention, see Kernels. */
    static void headNorm(Tensor x, @Nullable Tensor gate, Tensor y, Tensor r, double epsilon) {
        int size = x.columns() / r.columns();
        for (int i = 0; i < x.rows(); i++) {
            float[] row = HostMatrix.of(x).row(i);
            float[] gates = gate == null ? new float[0] : HostMatrix.of(gate).row(i);
            float[] result = new float[row.length];
            for (int head = 0; head < r.columns(); head++) {
                double squares = 0;
                for (int j = head * size; j < (head + 1) * size; j++) {
                    squares += (double) row[j] * row[j];
                }
                float root = (float) (1 / Math.sqrt(squares / size + epsilon));
                HostMatrix.of(r).set(i, head, root);
                for (int j = head * size; j < (head + 1) * size; j++) {
                    double open = gate == null ? 1 : gates[j] * sigmoid(gates[j]);
                    result[j] = (float) (open * row[j] * root);
                }
            }
            HostMatrix.of(y).setRow(i, result);
        }
    }

    /** With {@code h = x r} and {@code g = dy silu(gate)}: {@code dx = r (g - h average(g h))}. */
    static void headNormBackward(
            Tensor dy,
            Tensor x,
            @Nullable Tensor gate,
            Tensor r,
            Tensor dx,
            @Nullable Tensor dGate) {
        int size = x.columns() / r.columns();
        for (int i = 0; i < x.rows(); i++) {
            float[] row = HostMatrix.of(x).row(i);
            float[] slopes = HostMatrix.of(dy).row(i);
            float[] gates = gate == null ? new float[0] : HostMatrix.of(gate).row(i);
            float[] dGates = new float[row.length];
            float[] result = new float[row.length];
            for (int head = 0; head < r.columns(); head++) {
                double root = HostMatrix.of(r).get(i, head);
                double[] g = new double[size];
                double average = 0;
                for (int j = 0; j < size; j++) {
                    int at = head * size + j;
                    double h = row[at] * root;
                    double open = 1;
                    if (gate != null) {
                        double s = sigmoid(gates[at]);
                        open = gates[at] * s;
                        dGates[at] = (float) (slopes[at] * h * s * (1 + gates[at] * (1 - s)));
                    }
                    g[j] = slopes[at] * open;
                    average += g[j] * h / size;
                }
                for (int j = 0; j < size; j++) {
                    double h = row[head * size + j] * root;
                    result[head * size + j] = (float) (root * (g[j] - h * average));
                }
            }
            HostMatrix.of(dx).setRow(i, result);
            if (dGate != null) {
                HostMatrix.of(dGate).setRow(i, dGates);
            }
        }
    }

    private static double sigmoid(double a) {
        return 1 / (1 + StrictMath.exp(-a));
    }
}
