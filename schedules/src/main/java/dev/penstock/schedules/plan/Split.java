package dev.penstock.schedules.plan;

import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.plan.work.Layout;
import dev.penstock.schedules.plan.work.LayoutHardware;
import java.util.List;

/**
 * A layout with its micro-batches, slices and chunks: what all families that run it share.
 *
 * @param vShaped as {@link ScheduleFamily#vShaped}
 */
record Split(
        LayoutHardware hardware,
        int microBatches,
        int sequences,
        List<Integer> sliceLengths,
        int chunks,
        boolean vShaped,
        boolean recompute) {

    PipelineShape shape() {
        return new PipelineShape(hardware.layout().pipeline(), chunks, microBatches, sliceLengths);
    }

    /** Whether a family may run it. */
    boolean suits(ScheduleFamily family) {
        int slices = sliceLengths.size();
        return family.chunks().contains(chunks)
                && family.vShaped() == vShaped
                && (chunks > 1 || !family.needsChunks())
                && (slices > 1 ? family.sliced() : !family.needsSlices());
    }

    /** Whether the step has more units than a schedule can. */
    boolean isTooLarge() {
        Layout layout = hardware.layout();
        double units = (double) layout.pipeline() * chunks * microBatches * sliceLengths.size();
        return units > PipelineShape.MAX_UNITS;
    }
}
