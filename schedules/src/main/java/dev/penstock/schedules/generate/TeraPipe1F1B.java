package dev.penstock.schedules.generate;

import dev.penstock.schedules.generate.base.Pipeline;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;

/**
 * TeraPipe's slices (Li et al. 2021) inside 1F1B: forwards and backwards take turns by whole
 * micro-batches, and the slices of a micro-batch stream through the ranks as TeraPipe's do, rising
 * on the way forward and falling on the way back. A rank starts as soon as the first slice has come
 * and not the last, so filling and draining cost slices, and it holds what 1F1B holds.
 *
 * <p>{@link Seq1F1B} takes turns slice by slice instead: it holds about a slice for each further
 * rank where this holds a micro-batch, but every slice that it sends back waits for one that goes
 * forward. Here a micro-batch's backward runs without a forward in between, as TeraPipe's does: a
 * gradient of keys and values is handed on at once. One slice is 1F1B.
 *
 * <p>4 ranks, 4 micro-batches of 2 slices, a backward as long as a forward:
 *
 * <pre>
 * rank 0 | F0s0 F0s1 F1s0 F1s1 F2s0 F2s1 F3s0 F3s1 B0s1 B0s0           B1s1 B1s0           B2s1 ...
 * rank 1 |      F0s0 F0s1 F1s0 F1s1 F2s0 F2s1 B0s1 B0s0 F3s0 F3s1 B1s1 B1s0           B2s1 B2s0 ...
 * rank 2 |           F0s0 F0s1 F1s0 F1s1 B0s1 B0s0 F2s0 F2s1 B1s1 B1s0 F3s0 F3s1 B2s1 B2s0      ...
 * rank 3 |                F0s0 F0s1 B0s1 B0s0 F1s0 F1s1 B1s1 B1s0 F2s0 F2s1 B2s1 B2s0 F3s0 F3s1 ...
 * </pre>
 */
public final class TeraPipe1F1B {
    private TeraPipe1F1B() {}

    /**
     * The order of every rank; any number of ranks, micro-batches and slices of any lengths.
     *
     * @throws IllegalArgumentException for chunks
     */
    public static Schedule schedule(PipelineShape shape) {
        int microBatches = shape.microBatches();
        return Pipeline.plain(
                "terapipe-1f1b",
                shape,
                (rank, program) -> {
                    int ahead = Math.min(shape.ranks() - rank - 1, microBatches);
                    // warm-up
                    for (int i = 0; i < ahead; i++) {
                        forward(program, shape, i);
                    }
                    // steady
                    for (int i = 0; i < microBatches - ahead; i++) {
                        forward(program, shape, ahead + i);
                        backward(program, shape, i);
                    }
                    // cool-down
                    for (int i = microBatches - ahead; i < microBatches; i++) {
                        backward(program, shape, i);
                    }
                });
    }

    private static void forward(Pipeline.Program program, PipelineShape shape, int microBatch) {
        for (int slice = 0; slice < shape.slices(); slice++) {
            program.forward(0, microBatch, slice);
        }
    }

    private static void backward(Pipeline.Program program, PipelineShape shape, int microBatch) {
        for (int slice = shape.slices() - 1; slice >= 0; slice--) {
            program.backward(0, microBatch, slice);
        }
    }
}
