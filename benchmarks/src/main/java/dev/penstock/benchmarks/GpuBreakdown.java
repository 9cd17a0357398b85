package dev.penstock.benchmarks;

import dev.penstock.benchmarks.roofline.Card;
import dev.penstock.benchmarks.roofline.ModelStep;
import dev.penstock.benchmarks.roofline.ModelStep.Family;
import dev.penstock.benchmarks.roofline.ModelStep.Model;
import dev.penstock.benchmarks.roofline.Work;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.Gpus;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * A training step on the first GPU kernel by kernel, by events around each, beside the model of
 * {@link GpuModelBenchmark}: which kernel is further from its limits than the model has it.
 *
 * <p>Argument: a row, {@code 124m:16} without one, {@code 124m:16:gemmex} without cublasLt; {@code
 * toy:2} shows that everything runs.
 */
public final class GpuBreakdown {
    private static final int STEPS = 6;
    private static final TrainingShape TOY = new TrainingShape("toy", 1, 64, 1, 64, 64);

    /** What the host, copies and waits leave the GPU without. */
    private static final String BETWEEN = "(between kernels)";

    private record Measured(double launches, double millis) {}

    private GpuBreakdown() {}

    public static void main(String[] arguments) {
        GpuKitPart.run("measure", () -> measure(arguments));
    }

    private static void measure(String[] arguments) throws IOException {
        String row = arguments.length == 0 ? "124m:16" : arguments[0];
        Gpus.Gpu gpu =
                switch (Devices.probeGpus()) {
                    case Gpus.Found(var gpus) -> gpus.getFirst();
                    case Gpus.None(String reason) -> throw new IllegalStateException(reason);
                };
        ModelStep step = step(row);
        Card card =
                Card.ALL.stream()
                        .filter(each -> gpu.name().contains(each.name()))
                        .findFirst()
                        .orElse(Card.H100);
        print(gpu.name(), row, step, card, measured(row, step));
    }

    private static ModelStep step(String row) {
        if (row.startsWith("toy:2")) {
            Model toy =
                    Model.gpt2(
                            TOY.layers(),
                            TOY.width(),
                            TOY.heads(),
                            TOY.context(),
                            TOY.vocabulary());
            return ModelStep.of(toy, 2, true, !row.endsWith(GpuKitPart.GEMMEX));
        }
        ModelStep step = GpuModelBenchmark.step(row);
        if (step.model().family() != Family.GPT2) {
            throw new IllegalStateException(
                    "expected a row of a GPT-2 such as 124m:16, got " + row);
        }
        return step;
    }

    private static Map<String, Measured> measured(String row, ModelStep step) throws IOException {
        Path file = Files.createTempFile("penstock-kernels", ".tsv");
        System.setProperty("penstock.gpu.times", file.toString());
        try {
            var shape =
                    new TrainingShape(
                            "measured",
                            step.model().layers(),
                            step.model().width(),
                            step.model().heads(),
                            step.model().context(),
                            step.model().vocabulary());
            var setup =
                    new TrainingMeasurement.Setup(
                            "measured",
                            shape,
                            STEPS,
                            step.sequences(),
                            1,
                            List.of(
                                    "device.kind=\"cuda:0\"",
                                    "device.precision=" + (step.bf16() ? "bf16" : "float32"),
                                    "timeouts.start=15 minutes"));
            GpuKitPart.measure(row, setup);
            Map<String, Measured> found = new LinkedHashMap<>();
            for (String line : Files.readAllLines(file)) {
                String[] parts = line.split("\t", -1);
                var each =
                        new Measured(
                                Double.parseDouble(parts[1]) / STEPS,
                                Double.parseDouble(parts[2]) / STEPS);
                found.merge(
                        kernel(parts[0]),
                        each,
                        (a, b) ->
                                new Measured(a.launches() + b.launches(), a.millis() + b.millis()));
            }
            return found;
        } finally {
            System.clearProperty("penstock.gpu.times");
            Files.delete(file);
        }
    }

    /** Products of all shapes together. */
    private static String kernel(String work) {
        int shape = work.indexOf(" [");
        return work.startsWith("product") && shape > 0 ? work.substring(0, shape) : work;
    }

    private static void print(
            String gpu, String row, ModelStep step, Card card, Map<String, Measured> measured) {
        Map<String, List<Work>> model = new LinkedHashMap<>();
        step.works()
                .forEach(
                        each ->
                                model.computeIfAbsent(each.kernel(), _ -> new ArrayList<>())
                                        .add(each));
        say("%s, a step of %s; the model's card: %s", gpu, row, card.name());
        say(
                "%-34s %9s %9s %9s %9s %9s %9s",
                "kernel", "launches", "ms", "predicted", "least", "GB/s", "TFLOP/s");
        List<Map.Entry<String, Measured>> longest =
                measured.entrySet().stream()
                        .sorted(
                                Comparator.comparingDouble(
                                        (Map.Entry<String, Measured> each) ->
                                                -each.getValue().millis()))
                        .toList();
        for (Map.Entry<String, Measured> each : longest) {
            Measured of = each.getValue();
            List<Work> works = model.getOrDefault(each.getKey(), List.of());
            double seconds = of.millis() / 1e3;
            say(
                    "%-34s %9.1f %9.3f %9.3f %9.3f %9.0f %9.1f",
                    each.getKey(),
                    of.launches(),
                    of.millis(),
                    1e3 * works.stream().mapToDouble(w -> card.seconds(w, step.bf16())).sum(),
                    1e3 * works.stream().mapToDouble(w -> card.leastSeconds(w, step.bf16())).sum(),
                    works.stream().mapToDouble(Work::bytes).sum() / seconds / 1e9,
                    works.stream().mapToDouble(Work::operations).sum() / seconds / 1e12);
        }
        double busy =
                longest.stream()
                        .filter(each -> !each.getKey().equals(BETWEEN))
                        .mapToDouble(each -> each.getValue().millis())
                        .sum();
        GpuKitPart.result(
                String.format(
                        Locale.ROOT,
                        "kernels together %.1f ms, predicted %.1f",
                        busy,
                        GpuModelBenchmark.millis(step, card)));
    }

    private static void say(String format, Object... values) {
        System.out.printf(Locale.ROOT, format + "%n", values);
    }
}
