package dev.penstock.cuda.kernels;

import dev.penstock.cuda.device.Tensor;

/**
 * Layer norm row by row, sums in double. With {@code h = (x - mean) * rstd}:
 *
 * <pre>
 *   y  = h * gain + bias
 *   dx = rstd * (g - average(g) - h * average(g * h)),  g = dy * gain
 * </pre>
 */
final class ReferenceLayerNorm {
    private ReferenceLayerNorm() {}

    static void forward(
            Tensor x,
            Tensor gain,
            Tensor bias,
            Tensor y,
            Tensor mean,
            Tensor rstd,
            double epsilon) {
        HostMatrix in = HostMatrix.of(x);
        float[] gains = HostMatrix.of(gain).row(0);
        float[] biases = HostMatrix.of(bias).row(0);
        HostMatrix out = HostMatrix.of(y);
        int width = x.columns();
        for (int i = 0; i < x.rows(); i++) {
            float[] row = in.row(i);
            double sum = 0;
            for (float value : row) {
                sum += value;
            }
            double average = sum / width;
            double squares = 0;
            for (float value : row) {
                squares += (value - average) * (value - average);
            }
            double scale = 1 / Math.sqrt(squares / width + epsilon);
            for (int j = 0; j < width; j++) {
                double h = (row[j] - average) * scale;
                row[j] = (float) (h * gains[j] + biases[j]);
            }
            out.setRow(i, row);
            HostMatrix.of(mean).set(0, i, (float) average);
            HostMatrix.of(rstd).set(0, i, (float) scale);
        }
    }

    static void backwardInput(
            Tensor dy, Tensor x, Tensor gain, Tensor mean, Tensor rstd, Tensor dx) {
        HostMatrix gradient = HostMatrix.of(dy);
        HostMatrix in = HostMatrix.of(x);
        float[] gains = HostMatrix.of(gain).row(0);
        HostMatrix out = HostMatrix.of(dx);
        int width = x.columns();
        for (int i = 0; i < x.rows(); i++) {
            double average = HostMatrix.of(mean).get(0, i);
            double scale = HostMatrix.of(rstd).get(0, i);
            float[] values = in.row(i);
            float[] slopes = gradient.row(i);
            double sum = 0;
            double product = 0;
            for (int j = 0; j < width; j++) {
                double g = (double) slopes[j] * gains[j];
                sum += g;
                product += g * (values[j] - average) * scale;
            }
            float[] sums = out.row(i);
            for (int j = 0; j < width; j++) {
                double g = (double) slopes[j] * gains[j];
                double h = (values[j] - average) * scale;
                sums[j] += (float) (scale * (g - sum / width - h * product / width));
            }
            out.setRow(i, sums);
        }
    }

    static void backwardWeight(
            Tensor dy,
            Tensor x,
            Tensor mean,
            Tensor rstd,
            Tensor dGain,
            Tensor dBias,
            int[] rowsInOrder) {
        HostMatrix gradient = HostMatrix.of(dy);
        HostMatrix in = HostMatrix.of(x);
        float[] means = HostMatrix.of(mean).row(0);
        float[] scales = HostMatrix.of(rstd).row(0);
        float[] gains = HostMatrix.of(dGain).row(0);
        float[] biases = HostMatrix.of(dBias).row(0);
        for (int row : rowsInOrder) {
            float[] values = in.row(row);
            float[] slopes = gradient.row(row);
            for (int j = 0; j < values.length; j++) {
                float h = (values[j] - means[row]) * scales[row];
                gains[j] = Math.fma(h, slopes[j], gains[j]);
                biases[j] += slopes[j];
            }
        }
        HostMatrix.of(dGain).setRow(0, gains);
        HostMatrix.of(dBias).setRow(0, biases);
    }
}
