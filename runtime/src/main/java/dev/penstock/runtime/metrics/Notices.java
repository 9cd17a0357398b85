package dev.penstock.runtime.metrics;

import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.StepTraffic;
import java.util.stream.Collectors;

/** What happened beside steps, in a sentence. */
public final class Notices {
    private Notices() {}

    /** A recovery: what died, what the run continued from, and what it cost. */
    public static String recovery(RecoveryReport report) {
        String from =
                switch (report.restart()) {
                    case MEMORY -> "what was in memory";
                    case SKIPPED ->
                            "what was in memory, step %d left out".formatted(report.fromStep());
                    case MIRROR -> "the neighbours' mirrors";
                    case CHECKPOINT -> "the checkpoint of step " + report.fromStep();
                };
        return "recovered: %s; known after %s, all ranks open %s later, from %s, %d %s lost"
                .formatted(
                        report.cause(),
                        Quantities.nanos(report.detectNanos()),
                        Quantities.nanos(report.resumeNanos()),
                        from,
                        report.stepsLost(),
                        report.stepsLost() == 1 ? "step" : "steps");
    }

    /** What a rank sends, by use: {@code activations 1.5 MiB, tensor sums 12.0 KiB}. */
    public static String traffic(StepTraffic sent) {
        return sent.byUse().entrySet().stream()
                .filter(use -> use.getValue() > 0)
                .map(use -> use.getKey() + " " + Quantities.bytes(use.getValue()))
                .collect(Collectors.joining(", "));
    }

    /** A straggler. */
    public static String straggler(int rank, long step, double factor) {
        return "straggler: rank %d takes %s times what its ops should, seen at step %d"
                .formatted(rank, Quantities.format("%.1f", factor), step);
    }
}
