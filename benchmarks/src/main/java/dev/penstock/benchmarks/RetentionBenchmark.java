package dev.penstock.benchmarks;

import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.inference.InferenceRequest;
import dev.penstock.runtime.inference.PipelineInference;
import dev.penstock.runtime.inference.TokenListener;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.model.generation.Sampling;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.Precision;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.schedules.ir.Op;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.function.Predicate;
import java.util.stream.IntStream;

/**
 * RetNet beside GPT-2 of the same width and layers, in the same run: what the last token slice of a
 * sequence costs beside the first, a generated token at position 8,192 beside one at 128, training
 * on sequences of 8,192 tokens, and what both learn, with the ablations of the paper's table 6 (Sun
 * et al., arXiv 2307.08621).
 *
 * <p>Arguments: the wanted parts of slices, generate, long and losses; without any, the first
 * three.
 */
public final class RetentionBenchmark {
    private static final List<String> FAMILIES = List.of("gpt2", "retnet");
    private static final double MEBI = 1 << 20;

    private RetentionBenchmark() {}

    public static void main(String[] arguments) throws Exception {
        List<String> parts =
                arguments.length == 0
                        ? List.of("slices", "generate", "long")
                        : Arrays.asList(arguments);
        PrintStream out = System.out;
        for (String part : parts) {
            switch (part) {
                case "slices" -> slices(out);
                case "generate" -> generate(out);
                case "long" -> longSequences(out);
                case "losses" -> losses(out);
                default ->
                        throw new IllegalArgumentException(
                                "expected slices, generate, long or losses, got " + part);
            }
            out.println();
        }
    }

    private static List<String> settings(String family, String... more) {
        List<String> all = new ArrayList<>(List.of("model.family=" + family, "model.tied=false"));
        all.addAll(Arrays.asList(more));
        return all;
    }

    // ---- slices ----

    private static void slices(PrintStream out) {
        var shape = new TrainingShape("slices", 4, 256, 4, 2_048, 256);
        int slices = 8;
        out.printf(
                "a sequence of %d tokens in %d slices, 4 layers, width 256, ms of a slice%n",
                shape.context(), slices);
        out.printf("%-8s %-9s %8s %8s %7s%n", "family", "op", "first", "last", "ratio");
        for (String family : FAMILIES) {
            var setup =
                    new TrainingMeasurement.Setup(
                            family,
                            shape,
                            8,
                            2,
                            2,
                            settings(family, "schedule.kind=seq1f1b", "schedule.slices=" + slices));
            double[][] found =
                    ShortRun.of(
                            setup,
                            (assembly, reports) ->
                                    new double[][] {
                                        bySlice(
                                                assembly,
                                                reports,
                                                slices,
                                                Op.Forward.class::isInstance),
                                        bySlice(
                                                assembly,
                                                reports,
                                                slices,
                                                Op.InputGradient.class::isInstance)
                                    });
            for (int op = 0; op < 2; op++) {
                double[] ms = found[op];
                out.printf(
                        Locale.ROOT,
                        "%-8s %-9s %8.1f %8.1f %7.2f%n",
                        family,
                        op == 0 ? "forward" : "backward",
                        ms[0],
                        ms[slices - 1],
                        ms[slices - 1] / ms[0]);
            }
        }
    }

    /** The median time of an op of each slice in the second half of the steps, in ms. */
    private static double[] bySlice(
            RunAssembly assembly, List<StepReport> reports, int slices, Predicate<Op> wanted) {
        List<Op> ops = assembly.plan().training().programs().getFirst().ops();
        double[] millis = new double[slices];
        for (int slice = 0; slice < slices; slice++) {
            List<Long> nanos = new ArrayList<>();
            for (StepReport step : reports.subList(reports.size() / 2, reports.size())) {
                for (int i = 0; i < ops.size(); i++) {
                    if (isOf(ops.get(i), slice, wanted)) {
                        nanos.add(nanos(step, i));
                    }
                }
            }
            millis[slice] = median(nanos.stream().mapToLong(Long::longValue).toArray());
        }
        return millis;
    }

    private static boolean isOf(Op op, int slice, Predicate<Op> wanted) {
        return wanted.test(op) && op instanceof Op.UnitOp of && of.unit().slice() == slice;
    }

    private static long nanos(StepReport step, int op) {
        RankStep rank = step.ranks().getFirst();
        return rank.opEndNanos()[op] - rank.opStartNanos()[op];
    }

    private static double median(long[] nanos) {
        Arrays.sort(nanos);
        return nanos[nanos.length / 2] / 1e6;
    }

    // ---- generation ----

    /** The times at which tokens arrived, on the clock of nanoTime. */
    private static final class Clock implements TokenListener {
        private final List<Long> times = new ArrayList<>();

        @Override
        public boolean onToken(int text, int token) {
            times.add(System.nanoTime());
            return true;
        }

        /** The median time between two tokens, in ms. */
        double between() {
            return median(
                    IntStream.range(1, times.size())
                            .mapToLong(i -> times.get(i) - times.get(i - 1))
                            .toArray());
        }
    }

    private static void generate(PrintStream out) throws Exception {
        int tokens = 64;
        out.printf(
                "%d generated tokens behind a prompt, 4 layers, width 256, context 8,256%n",
                tokens);
        out.printf(
                "%-8s %12s %12s %7s %14s %14s%n",
                "family", "ms at 128", "ms at 8,192", "ratio", "MiB at 128", "MiB at 8,192");
        for (String family : FAMILIES) {
            ModelShape shape = shape(family);
            continued(shape, 128, tokens); // a warm-up, in which code is compiled
            Measured near = continued(shape, 128, tokens);
            Measured far = continued(shape, 8_192, tokens);
            out.printf(
                    Locale.ROOT,
                    "%-8s %12.2f %12.2f %7.2f %14.1f %14.1f%n",
                    family,
                    near.millis(),
                    far.millis(),
                    far.millis() / near.millis(),
                    near.bytes() / MEBI,
                    far.bytes() / MEBI);
        }
    }

    private static ModelShape shape(String family) throws Exception {
        Path file = Files.createTempFile("penstock-", ".conf");
        try {
            Files.writeString(
                    file,
                    """
                    model { context = 8256, width = 256, layers = 4, heads = 4 }
                    data.source = "%s" # is not read
                    """
                            .formatted(file));
            return ConfigLoader.load(file, settings(family)).model().config(256).shape();
        } finally {
            Files.delete(file);
        }
    }

    /**
     * @param bytes device memory at its peak
     */
    private record Measured(double millis, long bytes) {}

    private static Measured continued(ModelShape shape, int prompt, int tokens) {
        List<Device> devices = new ArrayList<>();
        var pipeline =
                new PipelineInference(
                        shape,
                        StagePartition.byFlops(shape, 1),
                        Precision.FLOAT32,
                        ParameterSource.none(),
                        _ -> {
                            Device device = Devices.open(DeviceSettings.DEFAULTS);
                            devices.add(device);
                            return device;
                        });
        int[] words = IntStream.range(0, prompt).map(i -> 31 * i % shape.vocabulary()).toArray();
        var clock = new Clock();
        RunOutcome outcome =
                pipeline.run(
                                new InferenceRequest(
                                        List.of(words),
                                        tokens,
                                        new Sampling(1, 0, 1, 42),
                                        OptionalInt.empty(),
                                        true),
                                clock,
                                _ -> {})
                        .outcome();
        if (!(outcome instanceof RunOutcome.Completed)) {
            throw new IllegalStateException(shape + ": " + outcome);
        }
        return new Measured(clock.between(), devices.getFirst().memory().peakBytes());
    }

    // ---- long sequences ----

    private static void longSequences(PrintStream out) {
        var shape = new TrainingShape("long", 2, 512, 8, 8_192, 256);
        out.println("training on sequences of 8,192 tokens, 2 layers, width 512, one at a time");
        out.printf("%-8s %10s %10s%n", "family", "tokens/s", "MiB");
        double[] speed = new double[FAMILIES.size()];
        for (int i = 0; i < FAMILIES.size(); i++) {
            String family = FAMILIES.get(i);
            TrainingMeasurement found =
                    TrainingMeasurement.of(
                            new TrainingMeasurement.Setup(
                                    family, shape, 4, 1, 1, settings(family)));
            speed[i] = found.tokensPerSecond();
            out.printf(
                    Locale.ROOT,
                    "%-8s %10.0f %10.0f%n",
                    family,
                    speed[i],
                    found.peakBytes() / MEBI);
        }
        out.printf(
                Locale.ROOT,
                "retnet over gpt2: %.2f (the paper: 1.08 to 1.15 over FlashAttention, on GPUs, from 1.3B on)%n",
                speed[1] / speed[0]);
    }

    // ---- losses ----

    private record Variant(String name, List<String> settings, int seeds) {}

    private static void losses(PrintStream out) {
        List<Variant> variants =
                List.of(
                        new Variant("gpt2", settings("gpt2"), 3),
                        new Variant("retnet", settings("retnet"), 3),
                        new Variant("no gate", settings("retnet", "model.gate=false"), 1),
                        new Variant("no decay", settings("retnet", "model.decay=none"), 1),
                        new Variant("large decays", settings("retnet", "model.decay=large"), 1),
                        new Variant("one head of all", settings("retnet", "model.heads=1"), 1),
                        new Variant("eight heads", settings("retnet", "model.heads=8"), 1));
        out.println(
                "held-out loss after 200 steps of 1,024 bytes of the project's text, 4 layers, width 128, context 128");
        for (Variant variant : variants) {
            out.printf("%-16s", variant.name());
            for (int seed = 1; seed <= variant.seeds(); seed++) {
                out.printf(Locale.ROOT, " %8.4f", heldOut(variant, seed));
                out.flush();
            }
            out.println();
        }
    }

    private static double heldOut(Variant variant, int seed) {
        double[] last = {Double.NaN};
        var listener =
                new RunListener() {
                    @Override
                    public void onEvaluation(long step, double loss, OptionalDouble accuracy) {
                        last[0] = loss;
                    }
                };
        Path text = Path.of("sample-configs/data/penstock.txt.gz").toAbsolutePath();
        return ShortRun.watched(
                variant.name(),
                variant.settings(),
                directory ->
                        Files.writeString(
                                directory.resolve("benchmark.conf"),
                                """
                                run { name = benchmark, steps = 200, directory = runs, seed = %d }
                                model { context = 128, width = 128, layers = 4, heads = 4 }
                                data { source = "%s", tokenizer = bytes }
                                batch { sequences = 8, micro-batches = 4 }
                                pipeline { stages = 1 }
                                optimizer { learning-rate = 2e-3, warmup-steps = 20 }
                                evaluation { every = 200, batches = 16 }
                                checkpoint { every = 0 }
                                """
                                        .formatted(seed, text)),
                listener,
                _ -> last[0]);
    }
}
