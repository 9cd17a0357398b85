package dev.penstock.schedules.generate;

import dev.penstock.schedules.generate.base.BackwardOrder;
import dev.penstock.schedules.generate.base.Pipeline;
import dev.penstock.schedules.generate.base.Requirements;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;

/**
 * GPipe (Huang et al. 2019): all forwards, then all backwards. Every micro-batch stays live until
 * the last forward is done.
 *
 * <p>4 ranks, 8 micro-batches, a backward as long as a forward:
 *
 * <pre>
 * rank 0 | F0 F1 F2 F3 F4 F5 F6 F7                   B0 B1 B2 B3 B4 B5 B6 B7
 * rank 1 |    F0 F1 F2 F3 F4 F5 F6 F7             B0 B1 B2 B3 B4 B5 B6 B7
 * rank 2 |       F0 F1 F2 F3 F4 F5 F6 F7       B0 B1 B2 B3 B4 B5 B6 B7
 * rank 3 |          F0 F1 F2 F3 F4 F5 F6 F7 B0 B1 B2 B3 B4 B5 B6 B7
 * </pre>
 */
public final class GPipe {
    private GPipe() {}

    /**
     * The order of every rank; any number of ranks and micro-batches.
     *
     * @throws IllegalArgumentException for chunks or slices
     */
    public static Schedule schedule(PipelineShape shape, BackwardOrder backwardOrder) {
        Requirements.wholeSequences("gpipe", "terapipe", shape);
        String name =
                switch (backwardOrder) {
                    case FIFO -> "gpipe";
                    case REVERSE -> "gpipe-reverse";
                };
        int microBatches = shape.microBatches();
        return Pipeline.plain(
                name,
                shape,
                (_, program) -> {
                    // warm-up
                    for (int i = 0; i < microBatches; i++) {
                        program.forward(0, i, 0);
                    }
                    // cool-down; there is no steady phase
                    for (int i = 0; i < microBatches; i++) {
                        switch (backwardOrder) {
                            case FIFO -> program.backward(0, i, 0);
                            case REVERSE -> program.backward(0, microBatches - 1 - i, 0);
                        }
                    }
                });
    }
}
