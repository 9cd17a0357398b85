package dev.penstock.actors.supervisor;

import dev.penstock.actors.precision.LossScaleHistory;
import dev.penstock.actors.precision.Overflow;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.StepReport;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import org.jspecify.annotations.Nullable;

/** Collects the word of all ranks that take part that a committed step is applied. */
final class CommitRound {
    private final @Nullable RankStep[] timings;
    private final long step;
    private final double loss;
    private final double gradientNorm;
    private final double clipFactor;
    private final Optional<Overflow> overflow;
    private final double lossScale;
    private final long skipped;
    private int missing;

    /**
     * @param clipFactor means nothing if the step overflowed
     * @param scales of the run, up to the step before this one
     */
    CommitRound(
            RankTable ranks,
            long step,
            double loss,
            double gradientNorm,
            double clipFactor,
            Optional<Overflow> overflow,
            LossScaleHistory scales) {
        this(
                ranks,
                step,
                loss,
                gradientNorm,
                clipFactor,
                overflow,
                scales.scale(),
                scales.skipped());
    }

    private CommitRound(
            RankTable ranks,
            long step,
            double loss,
            double gradientNorm,
            double clipFactor,
            Optional<Overflow> overflow,
            double lossScale,
            long skipped) {
        this.timings = new RankStep[ranks.size()];
        this.step = step;
        this.loss = loss;
        this.gradientNorm = gradientNorm;
        this.clipFactor = clipFactor;
        this.overflow = overflow;
        this.lossScale = lossScale;
        this.skipped = skipped;
        this.missing = ranks.present();
    }

    /** The same without any answer, of the ranks that take part now. */
    CommitRound again(RankTable ranks) {
        return new CommitRound(
                ranks, step, loss, gradientNorm, clipFactor, overflow, lossScale, skipped);
    }

    long step() {
        return step;
    }

    /** What all ranks are told, however often. */
    RankCommand.Commit order(int epoch) {
        OptionalDouble factor =
                overflow.isPresent()
                        ? OptionalDouble.empty()
                        : OptionalDouble.of(clipFactor / lossScale);
        return new RankCommand.Commit(epoch, step, factor, skipped);
    }

    /** What was met in the step, if nothing of it is applied. */
    Optional<Overflow> overflow() {
        return overflow;
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
        List<RankStep> steps = new ArrayList<>();
        for (int rank = 0; rank < timings.length; rank++) {
            RankStep done = timings[rank];
            steps.add(done == null ? RankStep.absent(rank) : done);
        }
        return new StepReport(
                step, loss, gradientNorm, clipFactor, startNanos, endNanos, steps, skipped);
    }
}
