package dev.penstock.schedules.generate;

import dev.penstock.schedules.generate.base.ChunkGroups;
import dev.penstock.schedules.generate.base.Pipeline;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import java.util.OptionalInt;

/**
 * Seq1F1B-I (Sun et al. 2024, "Seq1F1B: Efficient Sequence-Level Pipeline Parallelism", section
 * 3.3): interleaved 1F1B over token slices. The bubble shrinks by chunks times slices. One slice is
 * interleaved 1F1B, one chunk holds more than {@link Seq1F1B} does.
 *
 * <p>4 ranks of 2 chunks, 2 micro-batches of 2 slices, a backward as long as a forward:
 *
 * <pre>
 * rank 0 | 0F0s0 0F0s1 0F1s0 0F1s1 4F0s0 4F0s1 4F1s0 4F1s1                         4B0s1       ...
 * rank 1 |       1F0s0 1F0s1 1F1s0 1F1s1 5F0s0 5F0s1 5F1s0 5F1s1             5B0s1       5B0s0 ...
 * rank 2 |             2F0s0 2F0s1 2F1s0 2F1s1 6F0s0 6F0s1 6F1s0 6F1s1 6B0s1       6B0s0       ...
 * rank 3 |                   3F0s0 3F0s1 3F1s0 3F1s1 7F0s0 7F0s1 7B0s1 7F1s0 7B0s0 7F1s1 7B1s1 ...
 * </pre>
 */
public final class Seq1F1BInterleaved {
    private Seq1F1BInterleaved() {}

    /**
     * The order of every rank; any number of ranks, chunks, micro-batches and slices of any
     * lengths. A group is all slices of some micro-batches, because a micro-batch turns round at
     * its last slice: without a wish the fewest that divide the micro-batches and have as many
     * slices as there are ranks, all if there are not.
     *
     * @param groupSize micro-batches of a group, a divisor of their number, with at least as many
     *     slices as ranks, or all
     * @throws IllegalArgumentException for groups that do not come out even or would hang
     */
    public static Schedule schedule(PipelineShape shape, OptionalInt groupSize) {
        String name = "seq1f1b-interleaved";
        ChunkGroups groups = ChunkGroups.ofSlices(name, shape, groupSize);
        int forwards = shape.unitsPerStage() * shape.chunks();
        int turn = (shape.chunks() - 1) * groups.size() + shape.slices() - 1;
        return Pipeline.loop(
                name,
                shape,
                (rank, program) -> {
                    int ahead = Math.min(2 * (shape.ranks() - rank - 1) + turn, forwards);
                    // warm-up
                    for (int k = 0; k < ahead; k++) {
                        forward(program, shape, groups, k);
                    }
                    // steady
                    for (int k = 0; k < forwards - ahead; k++) {
                        forward(program, shape, groups, ahead + k);
                        backward(program, shape, groups, k);
                    }
                    // cool-down
                    for (int k = forwards - ahead; k < forwards; k++) {
                        backward(program, shape, groups, k);
                    }
                });
    }

    private static void forward(
            Pipeline.Program program, PipelineShape shape, ChunkGroups groups, int k) {
        int unit = groups.unit(k);
        program.forward(groups.chunk(k), unit / shape.slices(), unit % shape.slices());
    }

    private static void backward(
            Pipeline.Program program, PipelineShape shape, ChunkGroups groups, int k) {
        int unit = groups.unit(k);
        int lastSlice = shape.slices() - 1;
        program.backward(
                groups.mirroredChunk(k), unit / shape.slices(), lastSlice - unit % shape.slices());
    }
}
