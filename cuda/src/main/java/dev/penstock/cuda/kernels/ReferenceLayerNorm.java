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

    static void part(Tensor x, Tensor part) {
        HostMatrix in = HostMatrix.of(x);
        HostMatrix out = HostMatrix.of(part);
        for (int i = 0; i < x.rows(); i++) {
            double sum = 0;
            float[] row = in.row(i);
            for (float value : row) {
                sum += value;
            }
            double average = sum / row.length;
            double squares = 0;
            for (float value : row) {
                squares += (value - average) * (value - average);
            }
            out.set(0, 2 * i, (float) average);
            out.set(0, 2 * i + 1, (float) squares);
        }
    }

    /** Sums of squares of several parts are brought together as by Chan, Golub and LeVeque. */
    static void ofParts(
            Tensor parts,
            Tensor x,
            Tensor gain,
            Tensor bias,
            Tensor y,
            Tensor mean,
            Tensor rstd,
            double epsilon) {
        HostMatrix in = HostMatrix.of(x);
        HostMatrix of = HostMatrix.of(parts);
        float[] gains = HostMatrix.of(gain).row(0);
        float[] biases = HostMatrix.of(bias).row(0);
        HostMatrix out = HostMatrix.of(y);
        int width = x.columns();
        for (int i = 0; i < x.rows(); i++) {
            double average = average(of, 2 * i);
            double squares = 0;
            for (int k = 0; k < parts.rows(); k++) {
                double apart = of.get(k, 2 * i) - average;
                squares += of.get(k, 2 * i + 1) + width * apart * apart;
            }
            double scale = 1 / Math.sqrt(squares / ((double) width * parts.rows()) + epsilon);
            float[] row = in.row(i);
            for (int j = 0; j < width; j++) {
                row[j] = (float) ((row[j] - average) * scale * gains[j] + biases[j]);
            }
            out.setRow(i, row);
            HostMatrix.of(mean).set(0, i, (float) average);
            HostMatrix.of(rstd).set(0, i, (float) scale);
        }
    }

    private static double average(HostMatrix parts, int column) {
        double sum = 0;
        for (int k = 0; k < parts.rows(); k++) {
            sum += parts.get(k, column);
        }
        return sum / parts.rows();
    }

    static void backwardPart(
            Tensor dy, Tensor x, Tensor gain, Tensor mean, Tensor rstd, Tensor part) {
        HostMatrix gradient = HostMatrix.of(dy);
        HostMatrix in = HostMatrix.of(x);
        float[] gains = HostMatrix.of(gain).row(0);
        HostMatrix out = HostMatrix.of(part);
        for (int i = 0; i < x.rows(); i++) {
            double average = HostMatrix.of(mean).get(0, i);
            double scale = HostMatrix.of(rstd).get(0, i);
            float[] values = in.row(i);
            float[] slopes = gradient.row(i);
            double sum = 0;
            double product = 0;
            for (int j = 0; j < values.length; j++) {
                double g = (double) slopes[j] * gains[j];
                sum += g;
                product += g * (values[j] - average) * scale;
            }
            out.set(0, 2 * i, (float) (sum / values.length));
            out.set(0, 2 * i + 1, (float) (product / values.length));
        }
    }

    static void backwardOfParts(
            Tensor parts, Tensor dy, Tensor x, Tensor gain, Tensor mean, Tensor rstd, Tensor dx) {
        HostMatrix gradient = HostMatrix.of(dy);
        HostMatrix in = HostMatrix.of(x);
        HostMatrix of = HostMatrix.of(parts);
        float[] gains = HostMatrix.of(gain).row(0);
        HostMatrix out = HostMatrix.of(dx);
        for (int i = 0; i < x.rows(); i++) {
            double average = HostMatrix.of(mean).get(0, i);
            double scale = HostMatrix.of(rstd).get(0, i);
            double averageG = average(of, 2 * i);
            double averageGh = average(of, 2 * i + 1);
            float[] values = in.row(i);
            float[] slopes = gradient.row(i);
            float[] sums = out.row(i);
            for (int j = 0; j < values.length; j++) {
                double g = (double) slopes[j] * gains[j];
                double h = (values[j] - average) * scale;
                sums[j] += (float) (scale * (g - averageG - h * averageGh));
            }
            out.setRow(i, sums);
        }
    }
}
