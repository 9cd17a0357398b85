package dev.penstock.schedules.generate;

import dev.penstock.schedules.generate.base.Pipeline;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;

/**
 * TeraPipe (Li et al. 2021): GPipe over token slices. A slice runs as soon as the slices before it
 * have left their keys and values; the way back takes everything in reverse. Slices may be of
 * unequal length, so that each takes as long as the next in spite of its longer context.
 *
 * <p>4 ranks, 2 micro-batches of 2 slices (F0s1 is slice 1 of micro-batch 0), a backward as long as
 * a forward:
 *
 * <pre>
 * rank 0 | F0s0 F0s1 F1s0 F1s1                               B1s1 B1s0 B0s1 B0s0
 * rank 1 |      F0s0 F0s1 F1s0 F1s1                     B1s1 B1s0 B0s1 B0s0
 * rank 2 |           F0s0 F0s1 F1s0 F1s1           B1s1 B1s0 B0s1 B0s0
 * rank 3 |                F0s0 F0s1 F1s0 F1s1 B1s1 B1s0 B0s1 B0s0
 * </pre>
 */
public final class TeraPipe {
    private TeraPipe() {}

    /**
     * The order of every rank; any number of ranks, micro-batches and slices of any lengths.
     *
     * @throws IllegalArgumentException for chunks
     */
    public static Schedule schedule(PipelineShape shape) {
        int slices = shape.slices();
        int units = shape.unitsPerStage();
        return Pipeline.plain(
                "terapipe",
                shape,
                (_, program) -> {
                    // warm-up
                    for (int i = 0; i < units; i++) {
                        program.forward(0, i / slices, i % slices);
                    }
                    // cool-down; there is no steady phase
                    for (int i = units - 1; i >= 0; i--) {
                        program.backward(0, i / slices, i % slices);
                    }
                });
    }
}
