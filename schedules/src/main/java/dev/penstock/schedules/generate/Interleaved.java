package dev.penstock.schedules.generate;

import dev.penstock.schedules.generate.base.ChunkGroups;
import dev.penstock.schedules.generate.base.Pipeline;
import dev.penstock.schedules.generate.base.Requirements;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import java.util.OptionalInt;

/**
 * Interleaved 1F1B (Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on GPU
 * Clusters Using Megatron-LM", section 2.2): a rank holds several stages, one from each turn of the
 * loop, and passes a group of micro-batches through one chunk after the other. The ranks fill and
 * drain in steps of a chunk, so the bubble shrinks by the number of chunks; more is sent and more
 * is held.
 *
 * <p>4 ranks of 2 chunks, 4 micro-batches (4F0 is stage 4's forward of micro-batch 0), a backward
 * as long as a forward:
 *
 * <pre>
 * rank 0 | 0F0 0F1 0F2 0F3 4F0 4F1 4F2 4F3             4B0     4B1     4B2     4B3 0B0 0B1 0B2 0B3
 * rank 1 |     1F0 1F1 1F2 1F3 5F0 5F1 5F2 5F3     5B0     5B1     5B2     5B3 1B0 1B1 1B2 1B3
 * rank 2 |         2F0 2F1 2F2 2F3 6F0 6F1 6F2 6B0 6F3 6B1     6B2     6B3 2B0 2B1 2B2 2B3
 * rank 3 |             3F0 3F1 3F2 3F3 7F0 7B0 7F1 7B1 7F2 7B2 7F3 7B3 3B0 3B1 3B2 3B3
 * </pre>
 */
public final class Interleaved {
    private Interleaved() {}

    /**
     * The order of every rank. Micro-batches go in equal groups, as many as there are times the
     * ranks in their number, at least one; fewer micro-batches than ranks are one group.
     *
     * @param groupSize micro-batches of a group, a divisor of their number and at least as many as
     *     ranks, or all
     * @throws IllegalArgumentException for slices, or groups that do not come out even or would
     *     hang
     */
    public static Schedule schedule(PipelineShape shape, OptionalInt groupSize) {
        String name = "interleaved-1f1b";
        Requirements.wholeSequences(name, "seq1f1b-interleaved", shape);
        ChunkGroups groups = ChunkGroups.ofMicroBatches(name, shape, groupSize);
        int forwards = shape.microBatches() * shape.chunks();
        return Pipeline.loop(
                name,
                shape,
                (rank, program) -> {
                    int fill = 2 * (shape.ranks() - rank - 1);
                    int ahead = Math.min(fill + (shape.chunks() - 1) * groups.size(), forwards);
                    // warm-up
                    for (int k = 0; k < ahead; k++) {
                        program.forward(groups.chunk(k), groups.unit(k), 0);
                    }
                    // steady
                    for (int k = 0; k < forwards - ahead; k++) {
                        program.forward(groups.chunk(ahead + k), groups.unit(ahead + k), 0);
                        program.backward(groups.mirroredChunk(k), groups.unit(k), 0);
                    }
                    // cool-down
                    for (int k = forwards - ahead; k < forwards; k++) {
                        program.backward(groups.mirroredChunk(k), groups.unit(k), 0);
                    }
                });
    }
}
