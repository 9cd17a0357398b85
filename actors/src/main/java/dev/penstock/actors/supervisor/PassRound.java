package dev.penstock.actors.supervisor;

import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.actors.spi.StepResult;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** Collects the answers to one pass of all ranks that take part. */
final class PassRound {
    private final @Nullable StepResult[] results;
    private final long pass;
    private final StepKind kind;
    private final long step;
    private final List<Integer> leftOut;
    private final OptionalDouble lossScale;
    private int missing;

    PassRound(
            RankTable ranks,
            long pass,
            StepKind kind,
            long step,
            List<Integer> leftOut,
            OptionalDouble lossScale) {
        this.results = new StepResult[ranks.size()];
        this.pass = pass;
        this.kind = kind;
        this.step = step;
        this.leftOut = leftOut;
        this.lossScale = lossScale;
        this.missing = ranks.present();
    }

    StepKind kind() {
        return kind;
    }

    long step() {
        return step;
    }

    /** Micro-batches whose ops are left out. */
    List<Integer> leftOut() {
        return leftOut;
    }

    /** What the loss is multiplied by; empty if it is not scaled. */
    OptionalDouble lossScale() {
        return lossScale;
    }

    /** Takes an answer; true when it was the last one missing. */
    boolean accept(RankEvent.PassDone done) {
        if (done.pass() != pass || results[done.rank()] != null) {
            return false;
        }
        results[done.rank()] = done.result();
        return --missing == 0;
    }

    boolean lacks(int rank) {
        return results[rank] == null;
    }

    long pass() {
        return pass;
    }

    /** The mean of what the last stages of all replicas reported, added in rank order. */
    double loss() {
        return mean(StepResult::loss)
                .orElseThrow(
                        () ->
                                new IllegalStateException(
                                        "pass %d: no rank reported a loss".formatted(pass)));
    }

    /** The same of accuracies; empty unless the model classifies. */
    OptionalDouble accuracy() {
        return mean(StepResult::accuracy);
    }

    private OptionalDouble mean(Function<StepResult, OptionalDouble> reported) {
        double sum = 0;
        int count = 0;
        for (StepResult result : results) {
            if (result != null && reported.apply(result).isPresent()) {
                sum += reported.apply(result).getAsDouble();
                count++;
            }
        }
        return count == 0 ? OptionalDouble.empty() : OptionalDouble.of(sum / count);
    }

    /** The lowest rank that met a number that is not finite, if the loss is scaled. */
    OptionalInt overflowingRank() {
        return IntStream.range(0, results.length)
                .filter(rank -> overflowingStage(rank).isPresent())
                .findFirst();
    }

    OptionalInt overflowingStage(int rank) {
        StepResult result = results[rank];
        return result == null ? OptionalInt.empty() : result.overflow();
    }

    GradientSummary gradients() {
        List<GradientSummary.Part> parts = new ArrayList<>();
        for (int rank = 0; rank < results.length; rank++) {
            StepResult result = results[rank];
            if (result != null) { // else the rank is absent
                for (var norm : result.norms()) {
                    parts.add(new GradientSummary.Part(rank, norm));
                }
            }
        }
        return GradientSummary.of(parts, lossScale.orElse(1));
    }
}
