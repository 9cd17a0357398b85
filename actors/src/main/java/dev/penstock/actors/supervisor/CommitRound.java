package dev.penstock.actors.supervisor;

import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.StepReport;
import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Collects every rank's word that a committed step is applied. */
final class CommitRound {
    private final @Nullable RankStep[] timings;
    private final long step;
    private final double loss;
    private final double gradientNorm;
    private final double clipFactor;
    private int missing;

    CommitRound(int ranks, long step, double loss, double gradientNorm, double clipFactor) {
        this.timings = new RankStep[ranks];
        this.step = step;
        this.loss = loss;
        this.gradientNorm = gradientNorm;
        this.clipFactor = clipFactor;
        this.missing = ranks;
    }

    long step() {
        return step;
    }

    double clipFactor() {
        return clipFactor;
    }

    /** Takes an answer; true when it was the last one missing. */
    boolean accept(RankEvent.StepDone done) {
        if (done.step() != step || timings[done.rank()] != null) {
            return false;
        }
        timings[done.rank()] = done.timings();
        return --missing == 0;
    }

    boolean lacks(int rank) {
        return timings[rank] == null;
    }

    StepReport report(long startNanos, long endNanos) {
        return new StepReport(
                step,
                loss,
                gradientNorm,
                clipFactor,
                startNanos,
                endNanos,
                Arrays.stream(timings).map(Objects::requireNonNull).toList());
    }
}
