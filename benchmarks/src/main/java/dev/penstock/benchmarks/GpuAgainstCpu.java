package dev.penstock.benchmarks;

import dev.penstock.actors.spi.StepReport;
import java.util.List;
import java.util.Locale;

/**
 * The same small training on the CPU and on a GPU, in F32: their losses side by side. The exit code
 * is 1 if they differ by more than rounding.
 */
public final class GpuAgainstCpu {
    private static final TrainingShape SHAPE = new TrainingShape("check", 2, 64, 4, 64, 256);
    private static final int STEPS = 8;

    /** Sums are in another order, and eight steps of AdamW amplify the difference. */
    private static final double TOLERANCE = 1e-4;

    private GpuAgainstCpu() {}

    public static void main(String[] arguments) {
        GpuKitPart.run("compare", GpuAgainstCpu::compare);
    }

    private static void compare() {
        List<Double> cpu = losses("cpu");
        List<Double> gpu = losses("\"cuda:0\"");
        double furthest = 0;
        System.out.printf("%-6s %12s %12s%n", "step", "CPU", "GPU");
        for (int i = 0; i < STEPS; i++) {
            System.out.printf(Locale.ROOT, "%-6d %12.7f %12.7f%n", i + 1, cpu.get(i), gpu.get(i));
            furthest = Math.max(furthest, Math.abs(gpu.get(i) / cpu.get(i) - 1));
        }
        boolean agree = furthest <= TOLERANCE;
        System.out.printf(
                Locale.ROOT,
                "furthest apart: %.1e of the loss (allowed: %.0e): %s%n",
                furthest,
                TOLERANCE,
                agree ? "they agree" : "THEY DO NOT AGREE");
        System.exit(agree ? 0 : 1);
    }

    private static List<Double> losses(String device) {
        var setup =
                new TrainingMeasurement.Setup(
                        "check",
                        SHAPE,
                        STEPS,
                        4,
                        4,
                        List.of("pipeline.stages=2", "device.kind=" + device));
        return ShortRun.of(setup, (_, reports) -> reports.stream().map(StepReport::loss).toList());
    }
}
