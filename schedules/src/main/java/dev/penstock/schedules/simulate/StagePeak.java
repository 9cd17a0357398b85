package dev.penstock.schedules.simulate;

import java.util.List;

/**
 * The most that a stage holds at a time. A unit is live from its forward to its backward (its
 * {@code BackwardWeight} where that is split), both included; with a recompute from its forward to
 * the end of that, and again from the recompute on; where it is offloaded, to the end of that op,
 * and again from the reload on; in a forward-only program during its forward. A micro-batch is live
 * while a unit of it is; in a forward-only program from its first slice to its last.
 *
 * @param peakUnits most live units
 * @param peakUnitsPerSlice entry s is the most live units of slice s
 * @param peakMicroBatches most live micro-batches
 * @param peakBackwardMicroBatches most micro-batches of which a backward has begun and not all
 *     backwards have ended
 * @param peakInputsOnly most units that hold their input alone, waiting to be recomputed
 * @param peakAwaitingWeight most units between their {@code BackwardInput} and {@code
 *     BackwardWeight}
 * @param peakAway most units whose activations are on the host, from the start of the offload to
 *     the end of the reload
 */
public record StagePeak(
        int rank,
        int stage,
        int peakUnits,
        List<Integer> peakUnitsPerSlice,
        int peakMicroBatches,
        int peakBackwardMicroBatches,
        int peakInputsOnly,
        int peakAwaitingWeight,
        int peakAway) {
    public StagePeak {
        peakUnitsPerSlice = List.copyOf(peakUnitsPerSlice);
    }
}
