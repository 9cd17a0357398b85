package dev.penstock.benchmarks;

import dev.penstock.actors.spi.StepReport;
import java.util.List;
import java.util.Locale;

/**
 * The same small training on the CPU and on a GPU: their losses side by side, in F32 and in bf16,
 * the latter with cublasLt and without. The exit code is 1 if they differ by more than rounding.
 */
public final class GpuAgainstCpu {
    private static final TrainingShape SHAPE = new TrainingShape("check", 2, 64, 4, 64, 256);
    private static final int STEPS = 8;

    /** Fast enough to change losses by 3e-3 in these steps: what does not learn is not near. */
    private static final String LEARNING_RATE = "1e-3";

    /** Sums are in another order, and eight steps of AdamW amplify the difference. */
    private static final double F32_TOLERANCE = 1e-6;

    /** GPUs round more to bf16 than CPUs do. */
    private static final double BF16_TOLERANCE = 1e-4;

    private static final String CPU = "cpu";
    private static final String GPU = "\"cuda:0\"";

    private GpuAgainstCpu() {}

    public static void main(String[] arguments) {
        GpuKitPart.run("compare", GpuAgainstCpu::compare);
    }

    private static void compare() {
        List<Double> rounded = losses(CPU, "bf16");
        GpuKitPart.result(
                String.join(
                        "; ",
                        apart(
                                "float32",
                                losses(CPU, "float32"),
                                losses(GPU, "float32"),
                                F32_TOLERANCE),
                        apart("bf16", rounded, losses(GPU, "bf16"), BF16_TOLERANCE),
                        apart(
                                "bf16 without cublasLt",
                                rounded,
                                GpuKitPart.withoutCublasLt(() -> losses(GPU, "bf16")),
                                BF16_TOLERANCE)));
    }

    /** Prints both, and returns how far they are apart. */
    private static String apart(String of, List<Double> cpu, List<Double> gpu, double tolerance) {
        double furthest = 0;
        System.out.printf("%s%n%-6s %12s %12s%n", of, "step", "CPU", "GPU");
        for (int i = 0; i < STEPS; i++) {
            System.out.printf(Locale.ROOT, "%-6d %12.7f %12.7f%n", i + 1, cpu.get(i), gpu.get(i));
            furthest = Math.max(furthest, Math.abs(gpu.get(i) / cpu.get(i) - 1));
        }
        String apart =
                String.format(
                        Locale.ROOT,
                        "losses in %s are %.1e of the loss apart (allowed: %.0e)",
                        of,
                        furthest,
                        tolerance);
        if (!(furthest <= tolerance)) { // nor is what is no number near
            throw new IllegalStateException(apart);
        }
        return apart;
    }

    private static List<Double> losses(String device, String precision) {
        var setup =
                new TrainingMeasurement.Setup(
                        "check",
                        SHAPE,
                        STEPS,
                        4,
                        4,
                        List.of(
                                "pipeline.stages=2",
                                "device.kind=" + device,
                                "device.precision=" + precision,
                                "optimizer.learning-rate=" + LEARNING_RATE));
        return ShortRun.of(setup, (_, reports) -> reports.stream().map(StepReport::loss).toList());
    }
}
