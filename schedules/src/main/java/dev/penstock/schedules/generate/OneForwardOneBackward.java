package dev.penstock.schedules.generate;

import dev.penstock.schedules.generate.base.Pipeline;
import dev.penstock.schedules.generate.base.Requirements;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;

/**
 * 1F1B (PipeDream-flush, DAPPLE): as soon as a micro-batch has come through, forwards and backwards
 * take turns, so that rank r of P holds at most P - r micro-batches.
 *
 * <p>4 ranks, 8 micro-batches, a backward as long as a forward:
 *
 * <pre>
 * rank 0 | F0 F1 F2 F3          B0 F4 B1 F5 B2 F6 B3 F7 B4    B5    B6    B7
 * rank 1 |    F0 F1 F2       B0 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5    B6    B7
 * rank 2 |       F0 F1    B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6    B7
 * rank 3 |          F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7
 * </pre>
 */
public final class OneForwardOneBackward {
    private OneForwardOneBackward() {}

    /**
     * The order of every rank; any number of ranks and micro-batches.
     *
     * @throws IllegalArgumentException for chunks or slices
     */
    public static Schedule schedule(PipelineShape shape) {
        Requirements.wholeSequences("1f1b", "seq1f1b", shape);
        int microBatches = shape.microBatches();
        return Pipeline.plain(
                "1f1b",
                shape,
                (rank, program) -> {
                    int ahead = Math.min(shape.ranks() - rank - 1, microBatches);
                    // warm-up
                    for (int i = 0; i < ahead; i++) {
                        program.forward(0, i, 0);
                    }
                    // steady
                    for (int i = 0; i < microBatches - ahead; i++) {
                        program.forward(0, ahead + i, 0);
                        program.backward(0, i, 0);
                    }
                    // cool-down
                    for (int i = microBatches - ahead; i < microBatches; i++) {
                        program.backward(0, i, 0);
                    }
                });
    }
}
