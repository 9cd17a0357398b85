package dev.penstock.schedules.validate;

import java.util.Collections;
import java.util.List;

/**
 * The most bytes that a rank may hold.
 *
 * @param bytesOfRank entry r is the limit of rank r
 * @param heldThroughout entry r is what rank r holds from the first op to the last: own parameters,
 *     optimizer state, buffers
 */
public record MemoryLimit(MemoryModel model, List<Long> bytesOfRank, List<Long> heldThroughout) {
    public MemoryLimit {
        bytesOfRank = List.copyOf(bytesOfRank);
        heldThroughout = List.copyOf(heldThroughout);
        if (heldThroughout.size() != bytesOfRank.size()
                || heldThroughout.stream().anyMatch(bytes -> bytes < 0)) {
            throw new IllegalArgumentException(
                    "expected 0 bytes or more that each of %d ranks holds throughout, got %s"
                            .formatted(bytesOfRank.size(), heldThroughout));
        }
    }

    /** Ranks that hold nothing throughout, or whose limits are for the rest. */
    public MemoryLimit(MemoryModel model, List<Long> bytesOfRank) {
        this(model, bytesOfRank, Collections.nCopies(bytesOfRank.size(), 0L));
    }

    /** The same limit for each of so many ranks. */
    public static MemoryLimit uniform(MemoryModel model, int ranks, long bytes) {
        return new MemoryLimit(model, Collections.nCopies(ranks, bytes));
    }
}
