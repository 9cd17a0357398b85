package dev.penstock.schedules.generate;

import dev.penstock.schedules.generate.base.Pipeline;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;

/**
 * Breadth-first pipeline parallelism (Lamy-Poirier 2023, section 4): looped GPipe. A rank takes all
 * micro-batches through its first chunk, then all through the next; on the way back chunk by chunk
 * too. Each stage's parameters are used in one run per pass, so sharded ones are gathered once per
 * pass; every micro-batch stays live.
 *
 * <p>4 ranks of 2 chunks, 4 micro-batches (4F0 is stage 4's forward of micro-batch 0), a backward
 * as long as a forward:
 *
 * <pre>
 * rank 0 | 0F0 0F1 0F2 0F3 4F0 4F1 4F2 4F3                         4B3 4B2 4B1 4B0 0B3 0B2 0B1 0B0
 * rank 1 |     1F0 1F1 1F2 1F3 5F0 5F1 5F2 5F3                 5B3 5B2 5B1 5B0 1B3 1B2 1B1 1B0
 * rank 2 |         2F0 2F1 2F2 2F3 6F0 6F1 6F2 6F3         6B3 6B2 6B1 6B0 2B3 2B2 2B1 2B0
 * rank 3 |             3F0 3F1 3F2 3F3 7F0 7F1 7F2 7F3 7B3 7B2 7B1 7B0 3B3 3B2 3B1 3B0
 * </pre>
 */
public final class BreadthFirst {
    private BreadthFirst() {}

    /**
     * The order of every rank; any number of ranks, chunks, micro-batches and slices of any
     * lengths. Whole sequences return last first; where they are cut, micro-batches return as they
     * came and the slices of each in reverse.
     */
    public static Schedule schedule(PipelineShape shape) {
        int microBatches = shape.microBatches();
        boolean whole = shape.slices() == 1;
        return Pipeline.loop(
                "breadth-first",
                shape,
                (_, program) -> {
                    // warm-up
                    for (int chunk = 0; chunk < shape.chunks(); chunk++) {
                        for (int i = 0; i < microBatches; i++) {
                            for (int slice = 0; slice < shape.slices(); slice++) {
                                program.forward(chunk, i, slice);
                            }
                        }
                    }
                    // cool-down; there is no steady phase
                    for (int chunk = shape.chunks() - 1; chunk >= 0; chunk--) {
                        for (int i = 0; i < microBatches; i++) {
                            int microBatch = whole ? microBatches - 1 - i : i;
                            for (int slice = shape.slices() - 1; slice >= 0; slice--) {
                                program.backward(chunk, microBatch, slice);
                            }
                        }
                    }
                });
    }
}
