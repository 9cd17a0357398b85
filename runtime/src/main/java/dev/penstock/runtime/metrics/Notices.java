package dev.penstock.runtime.metrics;

import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.StepTraffic;
import java.util.stream.Collectors;

/** Events other than steps, each in a sentence. */
public final class Notices {
    private Notices() {}

    /** Describes a recovery: what died, what the run continued from, and what it cost. */
    public static String recovery(RecoveryReport report) {
        String from =
                switch (report.restart()) {
                    case MEMORY -> "the state in memory";
                    case SKIPPED ->
                            "the state in memory, step %d left out".formatted(report.fromStep());
                    case MIRROR -> "the neighbours' mirrors";
                    case CHECKPOINT -> "the checkpoint of step " + report.fromStep();
                };
        return "recovered: %s; %sresumed %s later from %s, %d %s lost"
                .formatted(
                        report.cause(),
                        report.detectNanos() == 0
                                ? ""
                                : "detected in %s, "
                                        .formatted(Quantities.nanos(report.detectNanos())),
                        Quantities.nanos(report.resumeNanos()),
                        from,
                        report.stepsLost(),
                        report.stepsLost() == 1 ? "step" : "steps");
    }

    /** Describes what a rank sends, by use: {@code activations 1.5 MiB, tensor sums 12.0 KiB}. */
    public static String traffic(StepTraffic sent) {
        return sent.byUse().entrySet().stream()
                .filter(use -> use.getValue() > 0)
                .map(use -> use.getKey() + " " + Quantities.bytes(use.getValue()))
                .collect(Collectors.joining(", "));
    }

    /** Describes a straggler. */
    public static String straggler(int rank, long step, double factor) {
        return "straggler: rank %d takes %sx the expected time for its ops, seen at step %d"
                .formatted(rank, Quantities.format("%.1f", factor), step);
    }
}
