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
    private static final double EPSILON = 1e-5;

    private ReferenceLayerNorm() {}

    static void forward(Tensor x, Tensor gain, Tensor bias, Tensor y, Tensor mean, Tensor rstd) {
        HostMatrix in = HostMatrix.of(x);
        HostMatrix gains = HostMatrix.of(gain);
        HostMatrix biases = HostMatrix.of(bias);
        HostMatrix out = HostMatrix.of(y);
        int width = x.columns();
        for (int i = 0; i < x.rows(); i++) {
            double sum = 0;
            for (int j = 0; j < width; j++) {
                sum += in.get(i, j);
            }
            double average = sum / width;
            double squares = 0;
            for (int j = 0; j < width; j++) {
                squares += (in.get(i, j) - average) * (in.get(i, j) - average);
            }
            double scale = 1 / Math.sqrt(squares / width + EPSILON);
            for (int j = 0; j < width; j++) {
                double h = (in.get(i, j) - average) * scale;
                out.set(i, j, (float) (h * gains.get(0, j) + biases.get(0, j)));
            }
            HostMatrix.of(mean).set(0, i, (float) average);
            HostMatrix.of(rstd).set(0, i, (float) scale);
        }
    }

    static void backwardInput(
            Tensor dy, Tensor x, Tensor gain, Tensor mean, Tensor rstd, Tensor dx) {
        HostMatrix gradient = HostMatrix.of(dy);
        HostMatrix in = HostMatrix.of(x);
        HostMatrix gains = HostMatrix.of(gain);
        HostMatrix out = HostMatrix.of(dx);
        int width = x.columns();
        for (int i = 0; i < x.rows(); i++) {
            double average = HostMatrix.of(mean).get(0, i);
            double scale = HostMatrix.of(rstd).get(0, i);
            double sum = 0;
            double product = 0;
            for (int j = 0; j < width; j++) {
                double g = (double) gradient.get(i, j) * gains.get(0, j);
                sum += g;
                product += g * (in.get(i, j) - average) * scale;
            }
            for (int j = 0; j < width; j++) {
                double g = (double) gradient.get(i, j) * gains.get(0, j);
                double h = (in.get(i, j) - average) * scale;
                out.add(i, j, (float) (scale * (g - sum / width - h * product / width)));
            }
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
        HostMatrix means = HostMatrix.of(mean);
        HostMatrix scales = HostMatrix.of(rstd);
        HostMatrix gainSum = HostMatrix.of(dGain);
        HostMatrix biasSum = HostMatrix.of(dBias);
        for (int row : rowsInOrder) {
            for (int j = 0; j < x.columns(); j++) {
                float h = (in.get(row, j) - means.get(0, row)) * scales.get(0, row);
                gainSum.set(0, j, Math.fma(h, gradient.get(row, j), gainSum.get(0, j)));
                biasSum.add(0, j, gradient.get(row, j));
            }
        }
    }
}
