package dev.penstock.schedules.validate;

import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.simulate.InFlight;
import java.util.OptionalInt;

/**
 * What a schedule is judged for.
 *
 * @param passKind what a complete schedule holds
 * @param inFlight capacities of the channels; without effect on a schedule without transfers
 * @param peakUnitsLimit the most units (stage, micro-batch, slice) that a rank may hold at a time
 */
public record Conditions(PassKind passKind, InFlight inFlight, OptionalInt peakUnitsLimit) {
    /** Forwards and backwards, unbounded channels, no limit. */
    public static Conditions training() {
        return new Conditions(PassKind.TRAINING, InFlight.unbounded(), OptionalInt.empty());
    }

    /** Forwards alone, unbounded channels, no limit. */
    public static Conditions forwardOnly() {
        return new Conditions(PassKind.FORWARD_ONLY, InFlight.unbounded(), OptionalInt.empty());
    }

    /** The same with these capacities. */
    public Conditions with(InFlight capacities) {
        return new Conditions(passKind, capacities, peakUnitsLimit);
    }

    /** The same with a limit on what a rank holds. */
    public Conditions withPeakUnitsLimit(int limit) {
        return new Conditions(passKind, inFlight, OptionalInt.of(limit));
    }
}
