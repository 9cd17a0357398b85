package dev.penstock.benchmarks;

import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * Adapters against full fine-tuning of a GPT-2 of 124M: tokens per second and device memory,
 * measured in one process with two threads, one after another.
 *
 * <p>Arguments: {@code float32} or {@code bf16}; without any, both.
 */
public final class LoraBenchmark {
    /**
     * A way to tune.
     *
     * @param settings of section {@code fine-tune}; the first way is what the others are compared
     *     with
     */
    private record Way(String name, String settings) {}

    private static final TrainingShape GPT2 = new TrainingShape("124m", 12, 768, 12, 1_024, 50_257);
    private static final int STEPS = 6;

    private static final List<Way> WAYS =
            List.of(
                    new Way("full", "method = full"),
                    new Way("lora of rank 8 on c_attn", "method = lora, rank = 8"),
                    new Way("the same, frozen in bf16", "method = lora, rank = 8, frozen = bf16"),
                    new Way(
                            "lora of rank 8 on all-linear",
                            "method = lora, rank = 8, targets = [all-linear]"),
                    new Way(
                            "full without wte, wpe, h.0 to h.9",
                            "freeze = [\"w*\", \"%s\"]".formatted(lowestTen())));

    private LoraBenchmark() {}

    /** {@code h.0.*}, {@code h.1.*}, and so on, as entries of a list. */
    private static String lowestTen() {
        List<String> blocks = new ArrayList<>();
        for (int block = 0; block < 10; block++) {
            blocks.add("h.%d.*".formatted(block));
        }
        return String.join("\", \"", blocks);
    }

    public static void main(String[] arguments) {
        PrintStream out = System.out;
        out.printf(
                "%-34s %8s %9s %7s %11s %7s %9s%n",
                "GPT-2 124M, 1 sequence of 1,024",
                "",
                "tokens/s",
                "of full",
                "memory",
                "of full",
                "of plan");
        for (String precision : List.of("float32", "bf16")) {
            if (arguments.length == 0 || Arrays.asList(arguments).contains(precision)) {
                measure(out, precision);
            }
        }
    }

    private static void measure(PrintStream out, String precision) {
        double speed = 0;
        double memory = 0;
        for (Way way : WAYS) {
            TrainingMeasurement found =
                    TrainingMeasurement.of(
                            new TrainingMeasurement.Setup(
                                    way.name(),
                                    GPT2,
                                    STEPS,
                                    GPT2.sequences(),
                                    1,
                                    List.of(
                                            "device.precision=" + precision,
                                            "fine-tune={" + way.settings() + "}")));
            if (speed == 0) {
                speed = found.tokensPerSecond();
                memory = found.peakBytes();
            }
            out.printf(
                    Locale.ROOT,
                    "%-34s %8s %9.0f %6.2fx %7.0f MiB %6.1f%% %8.1f%%%n",
                    way.name(),
                    precision,
                    found.tokensPerSecond(),
                    found.tokensPerSecond() / speed,
                    found.peakBytes() / 1048576.0,
                    100 * found.peakBytes() / memory,
                    100 * found.measuredOverPlanned());
            out.flush();
        }
    }
}
