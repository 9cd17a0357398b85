package dev.penstock.schedules.generate;

import dev.penstock.schedules.generate.base.Pipeline;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;

/**
 * Seq1F1B (Sun et al. 2024): 1F1B over token slices. Micro-batches return in the order they came,
 * the slices of one in reverse, so a micro-batch turns round when its last slice has come through.
 * One slice is 1F1B.
 *
 * <p>4 ranks, 4 micro-batches of 2 slices, a backward as long as a forward:
 *
 * <pre>
 * rank 0 | F0s0 F0s1 F1s0 F1s1 F2s0                B0s1 F2s1 B0s0 F3s0 B1s1 F3s1 B1s0      B2s1 ...
 * rank 1 |      F0s0 F0s1 F1s0 F1s1           B0s1 F2s0 B0s0 F2s1 B1s1 F3s0 B1s0 F3s1 B2s1      ...
 * rank 2 |           F0s0 F0s1 F1s0      B0s1 F1s1 B0s0 F2s0 B1s1 F2s1 B1s0 F3s0 B2s1 F3s1 B2s0 ...
 * rank 3 |                F0s0 F0s1 B0s1 F1s0 B0s0 F1s1 B1s1 F2s0 B1s0 F2s1 B2s1 F3s0 B2s0 F3s1 ...
 * </pre>
 */
public final class Seq1F1B {
    private Seq1F1B() {}

    /**
     * The order of every rank; any number of ranks, micro-batches and slices of any lengths.
     *
     * @throws IllegalArgumentException for chunks
     */
    public static Schedule schedule(PipelineShape shape) {
        int units = shape.unitsPerStage();
        return Pipeline.plain(
                "seq1f1b",
                shape,
                (rank, program) -> {
                    int ahead = Math.min(shape.ranks() - rank - 2 + shape.slices(), units);
                    // warm-up
                    for (int i = 0; i < ahead; i++) {
                        forward(program, shape, i);
                    }
                    // steady
                    for (int i = 0; i < units - ahead; i++) {
                        forward(program, shape, ahead + i);
                        backward(program, shape, i);
                    }
                    // cool-down
                    for (int i = units - ahead; i < units; i++) {
                        backward(program, shape, i);
                    }
                });
    }

    private static void forward(Pipeline.Program program, PipelineShape shape, int unit) {
        program.forward(0, unit / shape.slices(), unit % shape.slices());
    }

    private static void backward(Pipeline.Program program, PipelineShape shape, int unit) {
        int lastSlice = shape.slices() - 1;
        program.backward(0, unit / shape.slices(), lastSlice - unit % shape.slices());
    }
}
