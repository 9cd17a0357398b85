package dev.penstock.benchmarks;

import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.cuda.device.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Locale;

/**
 * Whether the driver takes the kernels, how long it compiles them where no machine code ships for
 * the GPU or {@code -Dpenstock.cubins=none}, and whether one of them runs. The exit code is 1 if
 * not; the reason is one line.
 */
public final class GpuLoad {
    private static final int ELEMENTS = 100_000;

    /** In a device's name. */
    private static final String COMPILED = "kernels ptx";

    private GpuLoad() {}

    public static void main(String[] arguments) {
        GpuKitPart.run("use the GPU", GpuLoad::load);
    }

    private static void load() {
        DeviceSettings gpu = DeviceSettings.DEFAULTS.withKind(Kind.CUDA).withGpu(0);
        long start = System.nanoTime();
        try (Device device = Devices.open(gpu)) {
            String name = device.name();
            System.out.println(name);
            double opened = seconds(start);
            start = System.nanoTime();
            float[] ones = new float[ELEMENTS];
            Arrays.fill(ones, 1);
            Tensor x = device.memory().tensor("x", DType.F32, 1, ELEMENTS);
            Tensor y = device.memory().tensor("y", DType.F32, 1, ELEMENTS);
            x.write(MemorySegment.ofArray(ones));
            y.write(MemorySegment.ofArray(ones));
            device.kernels().add(x, y);
            float[] sums = y.contents().toArray(ValueLayout.JAVA_FLOAT);
            for (int i = 0; i < ELEMENTS; i++) {
                if (sums[i] != 2) {
                    throw new IllegalStateException(
                            "a kernel ran wrong: expected 1 + 1 = 2 at %d, got %s"
                                    .formatted(i, sums[i]));
                }
            }
            GpuKitPart.result(
                    String.format(
                            Locale.ROOT,
                            "opened, with its kernels %s, after %.1f s; a kernel ran and its result came back"
                                    + " after %.1f ms",
                            name.contains(COMPILED) ? "compiled from PTX" : "loaded as they ship",
                            opened,
                            1e3 * seconds(start)));
        }
    }

    private static double seconds(long start) {
        return (System.nanoTime() - start) * 1e-9;
    }
}
