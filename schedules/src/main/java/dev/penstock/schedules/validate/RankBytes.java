package dev.penstock.schedules.validate;

import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.Schedule;
import java.util.List;

/**
 * The most bytes that a rank holds at a time, and what of. They follow from the order of the rank
 * alone, so they hold for every timing.
 *
 * @param position the op with which the peak is first reached
 * @param activationBytes of live units at that op
 * @param inputBytes of units that wait to be recomputed
 * @param gatheredBytes of parameters of others
 * @param hostBytes the most at a time, whenever that is, of units whose activations are on the
 *     host: from the start of the offload to the end of the reload
 */
public record RankBytes(
        int rank,
        int position,
        long activationBytes,
        long inputBytes,
        long gatheredBytes,
        long hostBytes) {
    /** All together of the device. */
    public long peakBytes() {
        return activationBytes + inputBytes + gatheredBytes;
    }

    RankBytes withHost(long bytes) {
        return new RankBytes(rank, position, activationBytes, inputBytes, gatheredBytes, bytes);
    }

    /**
     * The peaks of a schedule, lowered or not; entry r is of rank r.
     *
     * @throws IllegalArgumentException unless the model has all stages and slices of the schedule
     */
    public static List<RankBytes> of(Schedule schedule, PassKind passKind, MemoryModel model) {
        model.requireFits(schedule.shape());
        return schedule.programs().stream()
                .map(program -> new HeldBytes(schedule.shape(), passKind, program, model).peak())
                .toList();
    }
}
