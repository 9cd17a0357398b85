package dev.penstock.runtime.report;

import dev.penstock.actors.fault.Fault;
import dev.penstock.actors.fault.FaultMarkers;
import dev.penstock.actors.fault.FaultPlan;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * What an injected fault came to.
 *
 * @param fault in words
 * @param fired when it happened; empty for a condition, and for an event that was not reached
 * @param recovery what followed, if the run had to recover from it
 */
public record FaultOutcome(Fault fault, Optional<Instant> fired, Optional<Recovered> recovery) {
    private static final Duration SLACK = Duration.ofSeconds(5);

    /**
     * How the run came back.
     *
     * @param detectMillis from the fault to the start of the recovery
     * @param resumeMillis from there until every rank was open again
     * @param stepsLost committed steps that were done again
     */
    public record Recovered(double detectMillis, double resumeMillis, long stepsLost) {
        /** The recovery from what happened then. */
        public static Recovered from(Instant fault, RecoveryBook.Entry entry) {
            double detect = Math.max(0, Duration.between(fault, entry.began()).toNanos() / 1e6);
            return new Recovered(
                    detect, entry.report().resumeNanos() / 1e6, entry.report().stepsLost());
        }
    }

    /** The outcomes of all faults of a plan, in its order. */
    public static List<FaultOutcome> of(
            FaultPlan plan, FaultMarkers markers, List<RecoveryBook.Entry> recoveries) {
        List<FaultOutcome> outcomes = new ArrayList<>();
        for (int i = 0; i < plan.faults().size(); i++) {
            Fault fault = plan.faults().get(i);
            Optional<Instant> fired =
                    fault instanceof Fault.Event ? markers.firedAt(i) : Optional.empty();
            Optional<Recovered> recovered =
                    fired.flatMap(
                            at ->
                                    recoveries.stream()
                                            .filter(entry -> isOf(fault, at, entry))
                                            .findFirst()
                                            .map(entry -> Recovered.from(at, entry)));
            outcomes.add(new FaultOutcome(fault, fired, recovered));
        }
        return outcomes;
    }

    /** One sentence: what became of it. */
    public String told() {
        if (recovery.isPresent()) {
            return "recovered";
        }
        return switch (fault) {
            case Fault.Condition _ -> "survived";
            case Fault.Event _ -> fired.isPresent() ? "survived" : "not reached";
        };
    }

    private static boolean isOf(Fault fault, Instant at, RecoveryBook.Entry entry) {
        if (entry.resumed().isBefore(at)) {
            return false;
        }
        return switch (fault) {
            case Fault.KillRank kill -> entry.report().replaced().contains(kill.rank());
            case Fault.PauseRank pause ->
                    entry.report().replaced().contains(pause.rank())
                            && entry.began().isBefore(at.plus(pause.length()).plus(SLACK));
            case Fault.TearCheckpoint _, Fault.InjectNan _ ->
                    entry.began().isBefore(at.plus(SLACK));
            case Fault.FailDisk _, Fault.Condition _ -> false;
        };
    }
}
