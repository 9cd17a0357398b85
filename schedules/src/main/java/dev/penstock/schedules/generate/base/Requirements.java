package dev.penstock.schedules.generate.base;

import dev.penstock.schedules.ir.PipelineShape;

/** What kinds ask of a shape, with the numbers that would do. */
public final class Requirements {
    private Requirements() {}

    public static void chunks(String kind, int chunks, PipelineShape shape) {
        if (shape.chunks() != chunks) {
            throw new IllegalArgumentException(
                    "%s runs %s per rank, got %d %s; try %d"
                            .formatted(
                                    kind,
                                    chunks == 1 ? "one stage" : chunks + " stages",
                                    shape.chunks(),
                                    shape.chunks() == 1 ? "chunk" : "chunks",
                                    chunks));
        }
    }

    /**
     * Refuses slices.
     *
     * @param sliced the kind to try for slices
     */
    public static void wholeSequences(String kind, String sliced, PipelineShape shape) {
        if (shape.slices() != 1) {
            throw new IllegalArgumentException(
                    "%s runs whole sequences, got %d slices; try 1 slice, or %s"
                            .formatted(kind, shape.slices(), sliced));
        }
    }
}
