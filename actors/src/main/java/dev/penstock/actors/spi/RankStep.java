package dev.penstock.actors.spi;

import dev.penstock.actors.dataplane.LinkTraffic;
import java.util.List;

/**
 * What one rank did in a step; times on the clock of {@link System#nanoTime} of this host.
 *
 * @param opStartNanos and {@code opEndNanos}: entry i is the i-th op of the rank's lowered program;
 *     for a receive, the start is when the rank began to wait; the last one ends with all sums and
 *     gathers that the program began
 * @param updateStartNanos start of the optimizer
 * @param updateEndNanos end of the optimizer
 * @param peakBytes most device memory ever held by this rank
 * @param uses what it held memory for; each with its own most
 * @param allocatedHeapBytes heap bytes allocated by the rank's thread during the step's ops
 * @param links what went to and came from every peer, rising; since the links were opened
 * @param sent what it sent to other ranks for this step, by use
 * @param collectiveNanos entry i is, of the i-th op: of a computation the part that went to gathers
 *     of parameters; of a gather or a sum over replicas what the rank did and waited for it outside
 *     of computations, when the op ran or later; empty where not known
 * @param copyNanos entry i is, of the i-th op: of an offload, a reload, a gather that loads and a
 *     sum that leaves the memory, how long its copy took beside the computations, on the mean of
 *     the stage's; of a computation what it waited for activations that were on their way; empty
 *     where nothing was copied, or not known
 */
public record RankStep(
        int rank,
        long[] opStartNanos,
        long[] opEndNanos,
        long updateStartNanos,
        long updateEndNanos,
        long peakBytes,
        List<MemoryUse> uses,
        long allocatedHeapBytes,
        List<LinkTraffic> links,
        StepTraffic sent,
        long[] collectiveNanos,
        long[] copyNanos) {
    public RankStep {
        uses = List.copyOf(uses);
        links = List.copyOf(links);
    }

    /** Of a rank that copied nothing. */
    public RankStep(
            int rank,
            long[] opStartNanos,
            long[] opEndNanos,
            long updateStartNanos,
            long updateEndNanos,
            long peakBytes,
            List<MemoryUse> uses,
            long allocatedHeapBytes,
            List<LinkTraffic> links,
            StepTraffic sent,
            long[] collectiveNanos) {
        this(
                rank,
                opStartNanos,
                opEndNanos,
                updateStartNanos,
                updateEndNanos,
                peakBytes,
                uses,
                allocatedHeapBytes,
                links,
                sent,
                collectiveNanos,
                new long[0]);
    }

    /** Of a rank that took no part. */
    public static RankStep absent(int rank) {
        return new RankStep(
                rank,
                new long[0],
                new long[0],
                0,
                0,
                0,
                List.of(),
                0,
                List.of(),
                StepTraffic.NOTHING,
                new long[0]);
    }

    /** Whether the rank took no part: nothing of it was measured. */
    public boolean isAbsent() {
        return opStartNanos.length == 0;
    }

    /** The same under another number. */
    RankStep as(int other) {
        return new RankStep(
                other,
                opStartNanos,
                opEndNanos,
                updateStartNanos,
                updateEndNanos,
                peakBytes,
                uses,
                allocatedHeapBytes,
                links,
                sent,
                collectiveNanos,
                copyNanos);
    }
}
