package dev.penstock.cuda.kernels;

import dev.penstock.cuda.device.Tensor;

/**
 * Norm by the root of the average square, head by head, sums in double. With {@code h = x * r}:
 *
 * <pre>
 *   y  = h * gain
 *   dx = r * (g - h * average(g * h)),  g = dy * gain
 * </pre>
 */
final class ReferenceRmsNorm {
    private ReferenceRmsNorm() {}

    static void forward(Tensor x, Tensor gain, Tensor y, Tensor r, double epsilon) {
        HostMatrix in = HostMatrix.of(x);
        HostMatrix out = HostMatrix.of(y);
        float[] gains = HostMatrix.of(gain).row(0);
        int width = gains.length;
        int heads = x.columns() / width;
        for (int i = 0; i < x.rows(); i++) {
            float[] row = in.row(i);
            for (int head = 0; head < heads; head++) {
                double squares = 0;
                for (int j = 0; j < width; j++) {
                    double value = row[head * width + j];
                    squares += value * value;
                }
                double scale = 1 / Math.sqrt(squares / width + epsilon);
                for (int j = 0; j < width; j++) {
                    row[head * width + j] = (float) (row[head * width + j] * scale * gains[j]);
                }
                HostMatrix.of(r).set(0, i * heads + head, (float) scale);
            }
            out.setRow(i, row);
        }
    }

    static void backwardInput(
            Tensor dy, Tensor x, Tensor gain, Tensor r, Tensor dx, boolean accumulate) {
        HostMatrix out = HostMatrix.of(dx);
        float[] gains = HostMatrix.of(gain).row(0);
        int width = gains.length;
        int heads = x.columns() / width;
        for (int i = 0; i < x.rows(); i++) {
            float[] values = HostMatrix.of(x).row(i);
            float[] slopes = HostMatrix.of(dy).row(i);
            float[] sums = accumulate ? out.row(i) : new float[values.length];
            for (int head = 0; head < heads; head++) {
                double scale = HostMatrix.of(r).get(0, i * heads + head);
                int from = head * width;
                double product = 0;
                for (int j = 0; j < width; j++) {
                    product += (double) slopes[from + j] * gains[j] * values[from + j] * scale;
                }
                for (int j = 0; j < width; j++) {
                    double g = (double) slopes[from + j] * gains[j];
                    double h = values[from + j] * scale;
                    sums[from + j] += (float) (scale * (g - h * product / width));
                }
            }
            out.setRow(i, sums);
        }
    }

    static void backwardWeight(Tensor dy, Tensor x, Tensor r, Tensor dGain, int[] rowsInOrder) {
        float[] scales = HostMatrix.of(r).row(0);
        float[] gains = HostMatrix.of(dGain).row(0);
        int width = gains.length;
        int heads = x.columns() / width;
        for (int row : rowsInOrder) {
            float[] values = HostMatrix.of(x).row(row);
            float[] slopes = HostMatrix.of(dy).row(row);
            for (int j = 0; j < values.length; j++) {
                float h = values[j] * scales[row * heads + j / width];
                gains[j % width] = Math.fma(h, slopes[j], gains[j % width]);
            }
        }
        HostMatrix.of(dGain).setRow(0, gains);
    }
}
