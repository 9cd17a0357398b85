package dev.penstock.schedules.simulate;

import java.util.List;

/**
 * The most that a stage holds at a time. A unit is live from its forward to its backward, both
 * included; in a forward-only program during its forward. A micro-batch is live while a unit of it
 * is; in a forward-only program from its first slice to its last.
 *
 * @param peakUnits most live units
 * @param peakUnitsPerSlice entry s is the most live units of slice s
 * @param peakMicroBatches most live micro-batches
 * @param peakBackwardMicroBatches most micro-batches of which a backward has begun and not all
 *     backwards have ended
 */
public record StagePeak(
        int rank,
        int stage,
        int peakUnits,
        List<Integer> peakUnitsPerSlice,
        int peakMicroBatches,
        int peakBackwardMicroBatches) {
    public StagePeak {
        peakUnitsPerSlice = List.copyOf(peakUnitsPerSlice);
    }
}
