package dev.penstock.runtime.data.rows;

/**
 * How rows that hold one document each come together in micro-batches.
 *
 * @param padded whether all are as long as the context, in the order in which they are drawn;
 *     otherwise those of similar lengths come together, and a micro-batch is as long as its longest
 * @param lengthStep tokens of which the length of a micro-batch is a multiple, unless it is the
 *     context
 * @param replicas that divide the micro-batches of a step among themselves
 * @param arrangement of the micro-batches of a replica
 */
public record RowsApart(boolean padded, int lengthStep, int replicas, Arrangement arrangement) {
    public RowsApart {
        if (lengthStep < 1 || replicas < 1) {
            throw new IllegalArgumentException(
                    "expected a length step and replicas of 1 or more, got %d and %d"
                            .formatted(lengthStep, replicas));
        }
    }

    /** Returns the length of a micro-batch whose longest row has so many tokens. */
    int rounded(int tokens, int context) {
        return (int) Math.min(context, (long) Math.ceilDiv(tokens, lengthStep) * lengthStep);
    }
}
