package dev.penstock.benchmarks;

import dev.penstock.actors.spi.StepReport;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.links.LinkCosts;
import dev.penstock.runtime.metrics.PipelineMeter;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;

/**
 * Training of two stages over emulated links, with and without codecs: how long a step takes, and
 * how long it takes in simulation with the times of its computations.
 *
 * <p>Arguments: the latency of the links, {@code 5 ms} unless given, and the width of the only
 * model to be trained.
 */
public final class LinkBenchmark {
    private static final int STEPS = 8;
    private static final int MICRO_BATCHES = 8;

    /**
     * @param sequences of a step
     */
    private record Row(TrainingShape shape, int sequences) {}

    /** As the quickstart's, and one whose computations are short beside its activations. */
    private static final List<Row> ROWS =
            List.of(
                    new Row(new TrainingShape("width 256", 4, 256, 4, 256, 256), 16),
                    new Row(new TrainingShape("width 64", 2, 64, 2, 256, 256), 64));

    private static final List<String> BANDWIDTHS = List.of("real", "100 Mbit/s", "10 Mbit/s");
    private static final List<String> CODECS = List.of("none", "fp16", "int8");

    /**
     * The best step of the last half: others use the same processors.
     *
     * @param seconds of a step
     * @param simulated seconds of the same, with the measured times of its computations and of its
     *     update
     */
    private record Measured(double seconds, double simulated) {}

    private LinkBenchmark() {}

    public static void main(String[] arguments) {
        String latency = arguments.length == 0 ? "5 ms" : arguments[0];
        PrintStream out = System.out;
        out.printf(
                """
                two stages, sequences of 256 tokens in %d micro-batches, float32, latency %s

                model      sequences link        codec    ms/step  of none  simulated  of measured
                """,
                MICRO_BATCHES, latency);
        List<Row> rows =
                ROWS.stream()
                        .filter(
                                row ->
                                        arguments.length < 2
                                                || row.shape().name().endsWith(arguments[1]))
                        .toList();
        for (Row row : rows) {
            for (String bandwidth : BANDWIDTHS) {
                double none = Double.NaN;
                for (String codec : CODECS) {
                    Measured measured = measured(row, bandwidth, latency, codec);
                    none = codec.equals("none") ? measured.seconds() : none;
                    out.printf(
                            Locale.ROOT,
                            "%-10s %9d %-11s %-6s %9.1f %8.2f %10.1f %12.3f%n",
                            row.shape().name(),
                            row.sequences(),
                            bandwidth,
                            codec,
                            1e3 * measured.seconds(),
                            none / measured.seconds(),
                            1e3 * measured.simulated(),
                            measured.simulated() / measured.seconds());
                }
            }
        }
        out.printf(
                """

                of none: speed over that of the row without a codec; simulated: milliseconds of a step with the measured
                times of its computations and its update; the best of the last half of %d steps counts
                """,
                STEPS);
    }

    private static Measured measured(Row row, String bandwidth, String latency, String codec) {
        List<String> settings =
                new ArrayList<>(
                        List.of(
                                "pipeline.stages=2",
                                "device.threads=1",
                                "evaluation.every=0",
                                "data-plane.codec=" + codec));
        if (!bandwidth.equals("real")) {
            settings.add("data-plane.emulate.bandwidth=" + bandwidth);
            settings.add("data-plane.emulate.latency=" + latency);
        }
        var setup =
                new TrainingMeasurement.Setup(
                        "%s, %s, %s".formatted(row.shape().name(), bandwidth, codec),
                        row.shape(),
                        STEPS,
                        row.sequences(),
                        MICRO_BATCHES,
                        settings);
        return ShortRun.of(setup, LinkBenchmark::summary);
    }

    private static Measured summary(RunAssembly assembly, List<StepReport> reports) {
        var meter =
                new PipelineMeter(
                        assembly.plan().training(),
                        assembly.plan().grid(),
                        (costs, order) -> LinkCosts.of(costs, order, assembly.config()));
        StepReport best =
                reports.subList(reports.size() / 2, reports.size()).stream()
                        .min(Comparator.comparingLong(LinkBenchmark::nanos))
                        .orElseThrow();
        long simulated = meter.measure(best).ideal().makespanNanos() + update(best);
        return new Measured(nanos(best) / 1e9, simulated / 1e9);
    }

    private static long nanos(StepReport step) {
        return step.endNanos() - step.startNanos();
    }

    private static long update(StepReport step) {
        return step.ranks().stream()
                .mapToLong(rank -> rank.updateEndNanos() - rank.updateStartNanos())
                .max()
                .orElse(0);
    }
}
