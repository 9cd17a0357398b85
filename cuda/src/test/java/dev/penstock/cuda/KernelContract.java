package dev.penstock.cuda;

import static org.assertj.core.api.Assertions.fail;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Gemm;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.kernels.HostMatrix;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import java.util.function.ToDoubleFunction;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * What the contract tests share: all implementations, fresh tensors of seeded random numbers, and
 * comparison with double-precision truth. With {@code -Dpenstock.gpu=real} the machine's GPU is the
 * only implementation.
 */
@Tag("gpu")
@ExtendWith(RealGpu.class)
abstract class KernelContract {
    /** Relative to the largest magnitude in the compared tensor. */
    static final double TOLERANCE = 4e-6;

    final Device device;
    final Kernels kernels;
    final Random random = new Random(20);
    private int tensors;

    static Stream<DeviceSettings> devices() {
        if (EmulatedGpus.areReal()) {
            return EmulatedGpus.devices();
        }
        DeviceSettings cpu = DeviceSettings.DEFAULTS.withKind(Kind.CPU);
        DeviceSettings java = cpu.withGemm(Gemm.JAVA);
        return Stream.concat(
                EmulatedGpus.devices(),
                Stream.of(
                        DeviceSettings.DEFAULTS.withKind(Kind.REFERENCE),
                        java.withVectorBits(512).withThreads(1),
                        java.withVectorBits(512).withThreads(2),
                        java.withVectorBits(256).withThreads(1),
                        java.withVectorBits(256).withThreads(3),
                        cpu.withThreads(1),
                        cpu.withThreads(2)));
    }

    /** These GPUs, and a CPU where they are emulated. */
    static Stream<DeviceSettings> withoutOthers(Stream<DeviceSettings> gpus) {
        return EmulatedGpus.areReal()
                ? gpus
                : Stream.concat(gpus, Stream.of(DeviceSettings.DEFAULTS.withKind(Kind.CPU)));
    }

    KernelContract(DeviceSettings settings) {
        device = Devices.open(settings);
        kernels = device.kernels();
    }

    @AfterEach
    void close() {
        device.close();
    }

    Tensor zeros(int rows, int columns) {
        return device.memory().tensor("t" + tensors++, DType.F32, rows, columns);
    }

    Tensor normals(int rows, int columns) {
        return filled(zeros(rows, columns));
    }

    /** A view with gaps between its rows and rows that start anywhere. */
    Tensor normalsWithGaps(int rows, int columns) {
        Tensor wide = normals(rows, columns + 7);
        return wide.columns(3, columns);
    }

    /** The same numbers without gaps. */
    Tensor copied(Tensor x) {
        Tensor y = zeros(x.rows(), x.columns());
        kernels.copy(x, y);
        return y;
    }

    Tensor filled(Tensor tensor) {
        HostMatrix matrix = HostMatrix.of(tensor);
        float[] row = new float[tensor.columns()];
        for (int i = 0; i < tensor.rows(); i++) {
            for (int j = 0; j < row.length; j++) {
                row[j] = (float) random.nextGaussian();
            }
            matrix.setRow(i, row);
        }
        return tensor;
    }

    Tensor indices(int count, int limit) {
        Tensor tensor = device.memory().tensor("t" + tensors++, DType.I32, 1, count);
        int[] indices = new int[count];
        for (int i = 0; i < count; i++) {
            indices[i] = random.nextInt(limit);
        }
        tensor.writeIndices(MemorySegment.ofArray(indices));
        return tensor;
    }

    static double[][] values(Tensor tensor) {
        HostMatrix matrix = HostMatrix.of(tensor);
        double[][] values = new double[tensor.rows()][tensor.columns()];
        for (int i = 0; i < tensor.rows(); i++) {
            for (int j = 0; j < tensor.columns(); j++) {
                values[i][j] = matrix.get(i, j);
            }
        }
        return values;
    }

    static int[] integers(Tensor tensor) {
        return tensor.contents().toArray(ValueLayout.JAVA_INT);
    }

    static void assertClose(String what, Tensor actual, double[][] truth, double tolerance) {
        double largest = 1e-30;
        for (double[] row : truth) {
            for (double value : row) {
                largest = Math.max(largest, Math.abs(value));
            }
        }
        HostMatrix matrix = HostMatrix.of(actual);
        for (int i = 0; i < actual.rows(); i++) {
            for (int j = 0; j < actual.columns(); j++) {
                double value = matrix.get(i, j);
                if (!(Math.abs(value - truth[i][j]) <= tolerance * largest)) {
                    fail(
                            "%s [%d, %d]: expected %s within %s, got %s",
                            what, i, j, truth[i][j], tolerance * largest, value);
                }
            }
        }
    }

    static void assertClose(String what, Tensor actual, double[][] truth) {
        assertClose(what, actual, truth, TOLERANCE);
    }

    /** The gradient of a function at x by central differences in double precision. */
    static double[][] gradient(double[][] x, ToDoubleFunction<double[][]> function) {
        double step = 1e-5;
        double[][] gradient = new double[x.length][x[0].length];
        for (int i = 0; i < x.length; i++) {
            for (int j = 0; j < x[i].length; j++) {
                double old = x[i][j];
                x[i][j] = old + step;
                double up = function.applyAsDouble(x);
                x[i][j] = old - step;
                double down = function.applyAsDouble(x);
                x[i][j] = old;
                gradient[i][j] = (up - down) / (2 * step);
            }
        }
        return gradient;
    }

    /** The sum of products of two matrices: turns a matrix-valued op into a scalar. */
    static double inner(double[][] a, double[][] b) {
        double sum = 0;
        for (int i = 0; i < a.length; i++) {
            for (int j = 0; j < a[i].length; j++) {
                sum += a[i][j] * b[i][j];
            }
        }
        return sum;
    }

    static double[][] plus(double[][] a, double[][] b) {
        double[][] sum = new double[a.length][a[0].length];
        for (int i = 0; i < a.length; i++) {
            for (int j = 0; j < a[i].length; j++) {
                sum[i][j] = a[i][j] + b[i][j];
            }
        }
        return sum;
    }
}
