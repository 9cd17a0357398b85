package dev.penstock.schedules.ir;

import java.util.Collections;
import java.util.List;

/**
 * The size of a pipeline and of one step.
 *
 * @param ranks pipeline workers, at least 1
 * @param chunks stages per rank, at least 1
 * @param microBatches micro-batches of a step, at least 1
 * @param sliceLengths relative or absolute (tokens) length of every token slice of a sequence,
 *     first slice first; one entry means that sequences are not cut
 */
public record PipelineShape(int ranks, int chunks, int microBatches, List<Integer> sliceLengths) {
    public PipelineShape {
        sliceLengths = List.copyOf(sliceLengths);
        if (ranks < 1 || chunks < 1 || microBatches < 1 || sliceLengths.isEmpty()) {
            throw new IllegalArgumentException(
                    "a pipeline needs at least 1 rank, chunk, micro-batch and slice, got %d, %d, %d, %d"
                            .formatted(ranks, chunks, microBatches, sliceLengths.size()));
        }
    }

    /** One stage per rank, whole sequences. */
    public static PipelineShape of(int ranks, int microBatches) {
        return of(ranks, microBatches, 1);
    }

    /** One stage per rank, {@code slices} equal slices of length 1. */
    public static PipelineShape of(int ranks, int microBatches, int slices) {
        return new PipelineShape(ranks, 1, microBatches, Collections.nCopies(slices, 1));
    }

    public int stages() {
        return ranks * chunks;
    }

    public int slices() {
        return sliceLengths.size();
    }
}
