package dev.penstock.runtime.speed;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;

/**
 * The rates of a device, each of the fastest of several runs. Its memory must have room for two
 * tensors of 64 MiB. Used by the thread that uses the device.
 */
public final class DeviceRates {
    /** On a GPU, work is queued; a single product would measure the queue. */
    private static final int TOGETHER = 10;

    private final Device device;
    private final long nanos;
    private final int leastRuns;
    private final int together;

    /**
     * @param nanos for the warm-up of a figure, and again for its runs
     * @param leastRuns of a figure
     */
    public DeviceRates(Device device, long nanos, int leastRuns) {
        this.device = device;
        this.nanos = nanos;
        this.leastRuns = leastRuns;
        this.together = device.memory().isStaged() ? TOGETHER : 1;
    }

    /**
     * FLOP/s of the product of activations [rows, columns] and weights [columns, outputs]; weights
     * have the type by which is multiplied.
     */
    public double productFlops(DType multiply, int rows, int columns, int outputs) {
        Tensor x = normals(rows, columns);
        Tensor w = normals(columns, outputs);
        Tensor y = device.memory().tensor("speed", DType.F32, rows, outputs);
        Tensor used = w;
        if (multiply != DType.F32) {
            used = device.memory().tensor("speed", multiply, columns, outputs);
            device.kernels().copy(w, used);
        }
        Tensor weights = used;
        double seconds =
                seconds(() -> device.kernels().gemm(multiply, false, x, false, weights, y, false));
        return 2.0 * rows * columns * outputs / seconds;
    }

    /** Bytes per second of a copy in its memory: each is read and written, and counts twice. */
    public double copyBytes() {
        int rows = 16 << 10;
        int columns = 1 << 10;
        Tensor from = device.memory().tensor("speed", DType.F32, rows, columns);
        Tensor to = device.memory().tensor("speed", DType.F32, rows, columns);
        device.kernels().zero(from);
        return 2.0 * from.bytes() / seconds(() -> device.kernels().copy(from, to));
    }

    private double seconds(Runnable op) {
        Runnable group =
                () -> {
                    for (int i = 0; i < together; i++) {
                        op.run();
                    }
                    device.kernels().finish();
                };
        return Repeated.fewestSeconds(group, nanos, leastRuns) / together;
    }

    private Tensor normals(int rows, int columns) {
        Tensor tensor = device.memory().tensor("speed", DType.F32, rows, columns);
        Random random = new Random(1);
        float[] some = new float[4099];
        for (int i = 0; i < some.length; i++) {
            some[i] = (float) random.nextGaussian();
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment values = arena.allocate(tensor.bytes(), 64);
            for (long i = 0; i < tensor.elements(); i++) {
                values.setAtIndex(ValueLayout.JAVA_FLOAT, i, some[(int) (i % some.length)]);
            }
            tensor.write(values);
        }
        return tensor;
    }
}
