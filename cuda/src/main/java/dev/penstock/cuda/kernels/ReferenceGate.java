package dev.penstock.cuda.kernels;

import dev.penstock.cuda.device.Tensor;

/**
 * SwiGLU, {@code z = silu(a) * b} with {@code silu(a) = a s(a)}, {@code s(a) = 1 / (1 + exp(-a))}:
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

    private static double sigmoid(double a) {
        return 1 / (1 + StrictMath.exp(-a));
    }
}
