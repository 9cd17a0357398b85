package dev.penstock.schedules.validate;

import dev.penstock.schedules.ir.FrozenStages;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.simulate.InFlight;
import java.util.Optional;
import java.util.OptionalInt;

/**
 * What a schedule is judged for.
 *
 * @param passKind what a complete schedule holds
 * @param inFlight capacities of the channels; without effect on a schedule without transfers
 * @param peakUnitsLimit the most units (stage, micro-batch, slice) that a rank may hold at a time
 * @param memoryLimit the most bytes that a rank may hold at a time, and how many layers stages have
 * @param replicated whether every stage has replicas, with whom a schedule that is not computations
 *     alone sums the gradients at least once
 * @param frozen stages of which nothing is trained
 */
public record Conditions(
        PassKind passKind,
        InFlight inFlight,
        OptionalInt peakUnitsLimit,
        Optional<MemoryLimit> memoryLimit,
        boolean replicated,
        FrozenStages frozen) {
    /** Forwards and backwards, unbounded channels, no limit. */
    public static Conditions training() {
        return of(PassKind.TRAINING);
    }

    /** Forwards alone, unbounded channels, no limit. */
    public static Conditions forwardOnly() {
        return of(PassKind.FORWARD_ONLY);
    }

    private static Conditions of(PassKind passKind) {
        return new Conditions(
                passKind,
                InFlight.unbounded(),
                OptionalInt.empty(),
                Optional.empty(),
                false,
                FrozenStages.NONE);
    }

    /** The same with these capacities. */
    public Conditions with(InFlight capacities) {
        return new Conditions(
                passKind, capacities, peakUnitsLimit, memoryLimit, replicated, frozen);
    }

    /** The same with a limit on the units that a rank holds. */
    public Conditions withPeakUnitsLimit(int limit) {
        return new Conditions(
                passKind, inFlight, OptionalInt.of(limit), memoryLimit, replicated, frozen);
    }

    /** The same with a limit on the bytes that a rank holds. */
    public Conditions withMemoryLimit(MemoryLimit limit) {
        return new Conditions(
                passKind, inFlight, peakUnitsLimit, Optional.of(limit), replicated, frozen);
    }

    /** The same for stages that all have replicas. */
    public Conditions withReplicas() {
        return new Conditions(passKind, inFlight, peakUnitsLimit, memoryLimit, true, frozen);
    }

    /**
     * The same where nothing is trained of these stages: a complete schedule has no backwards of
     * those before the first trained one, none for the weights of any, and no sums of gradients.
     */
    public Conditions withFrozen(FrozenStages stages) {
        return new Conditions(passKind, inFlight, peakUnitsLimit, memoryLimit, replicated, stages);
    }
}
