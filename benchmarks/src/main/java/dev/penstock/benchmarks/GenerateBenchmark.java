package dev.penstock.benchmarks;

import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.inference.InferenceRequest;
import dev.penstock.runtime.inference.PipelineInference;
import dev.penstock.runtime.inference.TokenListener;
import dev.penstock.runtime.model.generation.Sampling;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.Precision;
import dev.penstock.runtime.model.shape.StagePartition;
import java.io.PrintStream;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.OptionalInt;

/**
 * Tokens per second of generated texts: with keys and values kept and without, on one stage and
 * two, one text and eight. Cores are shared among the stages. Weights are random, which costs the
 * same.
 *
 * <p>Arguments: none.
 */
public final class GenerateBenchmark {
    private static final ModelShape MEDIUM = ModelShape.gpt2(8_192, 512, 512, 8, 8, true);
    private static final int PROMPT_TOKENS = 128;
    private static final int TOKENS = 64;
    private static final double NANOS = 1e9;

    private record Row(int stages, int prompts, boolean caches) {}

    /** The times at which tokens arrived, on the clock of nanoTime. */
    private static final class Clock implements TokenListener {
        private long first;
        private long last;
        private int tokens;

        @Override
        public boolean onToken(int text, int token) {
            last = System.nanoTime();
            first = tokens == 0 ? last : first;
            tokens++;
            return true;
        }
    }

    private GenerateBenchmark() {}

    public static void main(String[] arguments) {
        PrintStream out = System.out;
        out.printf(
                "medium (8 layers, width 512), prompts of %d tokens, %d tokens each, float32%n%n",
                PROMPT_TOKENS, TOKENS);
        out.printf(
                "%6s %7s %6s %14s %9s %9s%n",
                "stages", "prompts", "caches", "first token ms", "tokens/s", "speed-up");
        run(new Row(1, 1, true)); // a warm-up, in which code is compiled
        for (int prompts : new int[] {1, 8}) {
            for (int stages : new int[] {1, 2}) {
                double without = print(out, new Row(stages, prompts, false), Double.NaN);
                print(out, new Row(stages, prompts, true), without);
            }
        }
        out.printf(
                "%nspeed-up: over the row above it, which feeds the whole window for every"
                        + " token%n");
    }

    private static double print(PrintStream out, Row row, double without) {
        long start = System.nanoTime();
        Clock clock = run(row);
        double perSecond = (clock.tokens - 1) * NANOS / (clock.last - clock.first);
        out.printf(
                Locale.ROOT,
                "%6d %7d %6s %14.0f %9.1f %9s%n",
                row.stages(),
                row.prompts(),
                row.caches() ? "yes" : "no",
                (clock.first - start) / 1e6,
                perSecond,
                row.caches() ? String.format(Locale.ROOT, "%.1f", perSecond / without) : "-");
        out.flush();
        return perSecond;
    }

    private static Clock run(Row row) {
        int threads = Math.max(1, Runtime.getRuntime().availableProcessors() / row.stages());
        var pipeline =
                new PipelineInference(
                        MEDIUM,
                        StagePartition.byFlops(MEDIUM, row.stages()),
                        Precision.FLOAT32,
                        ParameterSource.none(),
                        _ -> Devices.open(DeviceSettings.DEFAULTS.withThreads(threads)));
        int[] prompt = new int[PROMPT_TOKENS];
        for (int i = 0; i < prompt.length; i++) {
            prompt[i] = 31 * i % MEDIUM.vocabulary();
        }
        List<int[]> prompts = Collections.nCopies(row.prompts(), prompt);
        var clock = new Clock();
        RunOutcome outcome =
                pipeline.run(
                                new InferenceRequest(
                                        prompts,
                                        TOKENS,
                                        new Sampling(1, 0, 1, 42),
                                        OptionalInt.empty(),
                                        row.caches()),
                                clock,
                                _ -> {})
                        .outcome();
        if (!(outcome instanceof RunOutcome.Completed)) {
            throw new IllegalStateException(row + ": " + outcome);
        }
        return clock;
    }
}
