package dev.penstock.schedules.validate;

import java.util.Collections;
import java.util.List;

/**
 * The most bytes that a rank may hold.
 *
 * @param bytesOfRank entry r is the limit of rank r
 */
public record MemoryLimit(MemoryModel model, List<Long> bytesOfRank) {
    public MemoryLimit {
        bytesOfRank = List.copyOf(bytesOfRank);
    }

    /** The same limit for each of so many ranks. */
    public static MemoryLimit uniform(MemoryModel model, int ranks, long bytes) {
        return new MemoryLimit(model, Collections.nCopies(ranks, bytes));
    }
}
