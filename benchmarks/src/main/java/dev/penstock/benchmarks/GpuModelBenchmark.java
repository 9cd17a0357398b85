package dev.penstock.benchmarks;

import dev.penstock.benchmarks.roofline.Card;
import dev.penstock.benchmarks.roofline.ModelStep;
import dev.penstock.benchmarks.roofline.ModelStep.Family;
import dev.penstock.benchmarks.roofline.ModelStep.Model;
import dev.penstock.benchmarks.roofline.Work;
import java.io.PrintStream;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/**
 * What a training step of GPT-2 or of the Llama family needs on GPUs, without one: bytes,
 * operations and launches of each kernel, the least time that a card's limits allow, and the time
 * predicted from how near kernels came to the limits of an H200; beside them what was measured
 * there (docs/gpu.md).
 *
 * <p>Arguments: rows such as {@code 124m:16} (products by cublasLt, which do what follows them),
 * {@code 124m:16:gemmex} (without it) or {@code 355m:16:f32}; without any, the goal, those that
 * were measured, an F32 step, and models of the Llama family.
 */
public final class GpuModelBenchmark {
    /** The goal for 124M in bf16 with 16 sequences on an H100. */
    private static final double GOAL_MILLIS = 45;

    /** Milliseconds of a step on the H200 of docs/gpu.md. */
    private record Measured(String row, double millis) {}

    private static final List<Measured> MEASURED =
            List.of(
                    new Measured("124m:1:gemmex", 10.1),
                    new Measured("124m:4:gemmex", 18.8),
                    new Measured("124m:16:gemmex", 48.0),
                    new Measured("124m:32:gemmex", 82.3),
                    new Measured("355m:16:gemmex", 106));

    private static final List<String> ROWS =
            List.of(
                    "124m:16",
                    "124m:1",
                    "124m:4",
                    "124m:32",
                    "355m:16",
                    "124m:1:gemmex",
                    "124m:4:gemmex",
                    "124m:16:gemmex",
                    "124m:32:gemmex",
                    "355m:16:gemmex",
                    "124m:4:f32",
                    "tinyllama:4",
                    "llama-1b:4");

    /** By their names in rows. */
    private static final Map<String, Model> MODELS =
            new TreeMap<>(
                    Map.of(
                            "124m",
                            Model.gpt2(12, 768, 12, 1_024, 50_257),
                            "355m",
                            Model.gpt2(24, 1_024, 16, 1_024, 50_257),
                            // TinyLlama 1.1B
                            "tinyllama",
                            new Model(Family.LLAMA, 22, 2_048, 32, 4, 5_632, 2_048, 32_000, false),
                            // Llama 3.2 1B, with sequences of 2,048 tokens
                            "llama-1b",
                            new Model(
                                    Family.LLAMA, 16, 2_048, 32, 8, 8_192, 2_048, 128_256, true)));

    private final PrintStream out;

    private GpuModelBenchmark(PrintStream out) {
        this.out = out;
    }

    public static void main(String[] arguments) {
        var benchmark = new GpuModelBenchmark(System.out);
        List<String> rows = arguments.length == 0 ? ROWS : List.of(arguments);
        try {
            for (String row : rows) {
                step(row);
            }
        } catch (IllegalArgumentException e) {
            System.err.println(e.getMessage());
            System.exit(2);
        }
        benchmark.print(rows);
    }

    /**
     * Returns the step that a row names.
     *
     * @throws IllegalArgumentException if it names none
     */
    static ModelStep step(String row) {
        String[] parts = row.split(":", -1);
        boolean known =
                (parts.length == 2
                                || (parts.length == 3
                                        && List.of("f32", "gemmex").contains(parts[2])))
                        && parts[1].matches("[1-9][0-9]{0,3}");
        Model model = MODELS.get(parts[0]);
        if (known && model != null) {
            boolean joined = parts.length == 2;
            boolean bf16 = joined || !parts[2].equals("f32");
            return ModelStep.of(model, Integer.parseInt(parts[1]), bf16, joined);
        }
        throw new IllegalArgumentException(
                "gpu-model: expected rows such as 124m:16, 124m:16:gemmex or 355m:16:f32 (models %s), got %s"
                        .formatted(String.join(", ", MODELS.keySet()), row));
    }

    /** Milliseconds of a step on a card. */
    static double millis(ModelStep step, Card card) {
        return step.works().stream().mapToDouble(each -> card.seconds(each, step.bf16())).sum()
                * 1e3;
    }

    private static double leastMillis(ModelStep step, Card card) {
        return step.works().stream().mapToDouble(each -> card.leastSeconds(each, step.bf16())).sum()
                * 1e3;
    }

    private void print(List<String> rows) {
        kernels(rows.getFirst());
        say("%-15s %9s %9s %9s%s%n", "step", "launches", "GB", "TFLOP", heads());
        rows.forEach(this::row);
        say(
                """

                least: every byte and operation at the card's full rate by its data sheet. predicted: as near to that as kernels of
                each kind came on one H200, and 1.5 us a launch. measured: on that H200 (docs/gpu.md), with which the shares
                were set for 124m:16:gemmex. All figures for other cards, for F32, and for products by cublasLt that do what
                follows them are predictions that no GPU has confirmed.
                """);
        double goal = millis(step("124m:16"), Card.H100);
        say(
                "goal: GPT-2 124M in bf16, 16 sequences, on an H100 in at most %.0f ms: %s (predicted %.1f ms, at least %.1f)%n",
                GOAL_MILLIS,
                goal <= GOAL_MILLIS ? "met" : "MISSED",
                goal,
                leastMillis(step("124m:16"), Card.H100));
    }

    private static String heads() {
        StringBuilder heads = new StringBuilder();
        for (Card card : Card.ALL) {
            heads.append(
                    String.format(Locale.ROOT, " %11s %11s", card.name() + " least", "predicted"));
        }
        return heads + String.format(Locale.ROOT, " %11s", "measured");
    }

    private void row(String row) {
        ModelStep step = step(row);
        List<Work> works = step.works();
        say(
                "%-15s %9d %9.1f %9.2f",
                row,
                works.stream().mapToLong(Work::launches).sum(),
                works.stream().mapToDouble(Work::bytes).sum() / 1e9,
                works.stream().mapToDouble(Work::operations).sum() / 1e12);
        for (Card card : Card.ALL) {
            say(" %11.1f %11.1f", leastMillis(step, card), millis(step, card));
        }
        String measured =
                MEASURED.stream()
                        .filter(each -> each.row().equals(row))
                        .map(each -> String.format(Locale.ROOT, "%.1f", each.millis()))
                        .findFirst()
                        .orElse("");
        say(" %11s%n", measured);
    }

    private void kernels(String row) {
        ModelStep step = step(row);
        say("%s, by kernel, ms on an H100 and an H200 as predicted:%n", row);
        say(
                "%-34s %8s %9s %9s %9s %9s %9s%n",
                "kernel", "launches", "GB read", "written", "TFLOP", "H100", "H200");
        boolean bf16 = step.bf16();
        step.works().stream()
                .sorted(
                        Comparator.comparingDouble((Work each) -> Card.H100.seconds(each, bf16))
                                .reversed())
                .forEach(
                        each ->
                                say(
                                        "%-34s %8d %9.2f %9.2f %9.3f %9.2f %9.2f%n",
                                        name(each),
                                        each.launches(),
                                        each.read() / 1e9,
                                        each.written() / 1e9,
                                        each.operations() / 1e12,
                                        1e3 * Card.H100.seconds(each, bf16),
                                        1e3 * Card.H200.seconds(each, bf16)));
        say("%n");
    }

    private static String name(Work work) {
        return work.kind() == Work.Kind.HEAD_PRODUCTS
                ? work.kernel() + " of the head"
                : work.kernel();
    }

    private void say(String format, Object... values) {
        out.printf(Locale.ROOT, format, values);
    }
}
