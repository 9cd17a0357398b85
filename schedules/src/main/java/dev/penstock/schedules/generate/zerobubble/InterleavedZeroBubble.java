package dev.penstock.schedules.generate.zerobubble;

import dev.penstock.schedules.generate.base.ChunkGroups;
import dev.penstock.schedules.generate.base.Pipeline;
import dev.penstock.schedules.generate.base.Requirements;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import java.util.OptionalInt;

/**
 * Interleaved 1F1B (Narayanan et al. 2021, section 2.2) with the split backward of ZB-H1 (Zero
 * Bubble Pipeline Parallelism, Qi et al. 2023, section 2.1): a warm-up shorter by half per rank, as
 * a gradient returns without its backward for the weights, which rank r runs r backwards later.
 *
 * <p>3 ranks of 2 chunks, 3 micro-batches, all ops of the same length (4F1: stage 4, micro-batch
 * 1):
 *
 * <pre>
 * rank 0 | 0F0 0F1 0F2 3F0 3F1 3F2         3I0 3W0 3I1 3W1 3I2 3W2 0I0 0W0 0I1 0W1 0I2 0W2
 * rank 1 |     1F0 1F1 1F2 4F0 4F1     4I0 4F2 4I1 4W0 4I2 4W1 1I0 4W2 1I1 1W0 1I2 1W1 1W2
 * rank 2 |         2F0 2F1 2F2 5F0 5I0 5F1 5I1 5F2 5I2 5W0 2I0 5W1 2I1 5W2 2I2 2W0 2W1 2W2
 * </pre>
 */
public final class InterleavedZeroBubble {
    private InterleavedZeroBubble() {}

    /**
     * The order of every rank; any number of ranks and chunks.
     *
     * @param groupSize micro-batches that go through a chunk before the next chunk's turn; by
     *     default as many equal groups as leave each as many micro-batches as ranks, at least one
     * @throws IllegalArgumentException for slices, or if the micro-batches cannot be parted so
     */
    public static Schedule schedule(PipelineShape shape, OptionalInt groupSize) {
        Requirements.wholeSequences("interleaved-zb", "seq1f1b-interleaved", shape);
        ChunkGroups groups = ChunkGroups.ofMicroBatches("interleaved-zb", shape, groupSize);
        int units = shape.microBatches() * shape.chunks();
        return Pipeline.loop(
                "interleaved-zb",
                shape,
                (rank, program) -> {
                    var turns = new Turns(groups, program);
                    int turn = (shape.chunks() - 1) * groups.size();
                    int ahead = Math.min(turn + shape.ranks() - rank - 1, units);
                    int behind = Math.min(rank, units);
                    // warm-up
                    for (int i = 0; i < ahead; i++) {
                        turns.forward(i);
                    }
                    // steady, then cool-down without forwards
                    for (int i = 0; i < units; i++) {
                        if (ahead + i < units) {
                            turns.forward(ahead + i);
                        }
                        turns.backwardInput(i);
                        if (i >= behind) {
                            turns.backwardWeight(i - behind);
                        }
                    }
                    // what was held back
                    for (int i = units - behind; i < units; i++) {
                        turns.backwardWeight(i);
                    }
                });
    }

    /** The ops of one rank by number. */
    private record Turns(ChunkGroups groups, Pipeline.Program program) {
        void forward(int k) {
            program.forward(groups.chunk(k), groups.unit(k), 0);
        }

        void backwardInput(int k) {
            program.backwardInput(groups.mirroredChunk(k), groups.unit(k), 0);
        }

        void backwardWeight(int k) {
            program.backwardWeight(groups.mirroredChunk(k), groups.unit(k), 0);
        }
    }
}
