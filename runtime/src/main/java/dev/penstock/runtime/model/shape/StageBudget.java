package dev.penstock.runtime.model.shape;

import java.util.Collections;
import java.util.List;

/**
 * The amount that a stage must be able to hold at a time, as proved by the schedule validator; the
 * stage allocates exactly this much when it is built.
 *
 * @param units maximum units whose forward was run and whose backward was not
 * @param unitsPerSlice entry s: the same for units of slice s alone
 * @param microBatches maximum micro-batches with at least one such unit
 * @param backwardMicroBatches maximum micro-batches whose backward has begun and not ended; 0 where
 *     no forward has a backward
 * @param awaitingWeight maximum units between the two parts of their backward; 0 where backwards
 *     are whole
 * @param away maximum units whose activations are on the host
 */
public record StageBudget(
        int units,
        List<Integer> unitsPerSlice,
        int microBatches,
        int backwardMicroBatches,
        int awaitingWeight,
        int away) {
    public StageBudget {
        unitsPerSlice = List.copyOf(unitsPerSlice);
        if (units < 1
                || microBatches < 1
                || backwardMicroBatches < 0
                || awaitingWeight < 0
                || away < 0
                || unitsPerSlice.isEmpty()
                || unitsPerSlice.stream().anyMatch(n -> n < 1)) {
            throw new IllegalArgumentException(
                    "a stage must hold at least 1 unit of every slice, 1 micro-batch forward and 0 backward, got %d, %s, %d, %d"
                            .formatted(units, unitsPerSlice, microBatches, backwardMicroBatches));
        }
    }

    /** The budget of an order that sends nothing to the host. */
    public StageBudget(
            int units,
            List<Integer> unitsPerSlice,
            int microBatches,
            int backwardMicroBatches,
            int awaitingWeight) {
        this(units, unitsPerSlice, microBatches, backwardMicroBatches, awaitingWeight, 0);
    }

    /** The budget of such an order whose backwards are whole. */
    public StageBudget(
            int units, List<Integer> unitsPerSlice, int microBatches, int backwardMicroBatches) {
        this(units, unitsPerSlice, microBatches, backwardMicroBatches, 0);
    }

    /** Returns whether units end with their forward, in training as well. */
    public boolean forwardOnly() {
        return backwardMicroBatches == 0;
    }

    /** Returns whether backwards come in two parts, so that a unit keeps its output's gradient. */
    public boolean split() {
        return awaitingWeight > 0;
    }

    /** Enough for every order of whole backwards: all units of a step at a time. */
    public static StageBudget everything(BatchShape batch) {
        return new StageBudget(
                batch.microBatches() * batch.slices(),
                Collections.nCopies(batch.slices(), batch.microBatches()),
                batch.microBatches(),
                batch.microBatches());
    }
}
