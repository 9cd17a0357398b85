package dev.penstock.runtime.report;

import dev.penstock.actors.spi.MemoryUse;
import java.util.List;

/**
 * Memory that a rank is to hold, by use.
 *
 * @param planned by the general formula alone: bytes per parameter, gradient and optimizer state,
 *     each divided where it is sharded; uses without a formula are not in it
 * @param proved what the rank's programs need, as the judge proved them
 */
public record MemoryPlan(List<MemoryUse> planned, List<MemoryUse> proved) {
    /** Of a rank that takes no part. */
    public static final MemoryPlan NOTHING = new MemoryPlan(List.of(), List.of());

    public MemoryPlan {
        planned = List.copyOf(planned);
        proved = List.copyOf(proved);
    }

    /** Proved bytes of all uses of the device. */
    public long total() {
        return proved.stream().filter(use -> !use.isOnHost()).mapToLong(MemoryUse::peakBytes).sum();
    }

    /** Proved bytes of files instead. */
    public long offloaded() {
        return of(proved, MemoryUse.ON_DISK);
    }

    /** Proved bytes of activations that leave the device. */
    public long activationsOnHost() {
        return of(proved, MemoryUse.HOST_ACTIVATIONS);
    }

    /** Whether it is known what for; of a run whose log is all that is left, it is not. */
    boolean isByUse() {
        return proved.stream().anyMatch(each -> MemoryUse.ALL.contains(each.use()));
    }

    /** Bytes of a use, 0 if there is none. */
    static long of(List<MemoryUse> uses, String use) {
        return uses.stream()
                .filter(each -> each.use().equals(use))
                .mapToLong(MemoryUse::peakBytes)
                .sum();
    }
}
