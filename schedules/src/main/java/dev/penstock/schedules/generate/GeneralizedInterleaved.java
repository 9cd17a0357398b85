package dev.penstock.schedules.generate;

import dev.penstock.schedules.generate.base.Pipeline;
import dev.penstock.schedules.generate.base.Requirements;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.OptionalInt;

/**
 * The generalized interleaved schedule of PipeOffload (Wan et al. 2025, arXiv 2503.01328, section
 * 4): micro-batches, or groups of them, visit the chunks at equal distances, and a backward begins
 * as soon as it can. A chunk's units wait for their backwards the longer the earlier it is, in a
 * straight line: sending the first half of the stages to the host (PO-H) takes away three quarters
 * of what is held for half of the traffic; PO-F sends all of them.
 *
 * <p>With groups of g micro-batches, d ranks, v chunks and k groups from one chunk to the next, a
 * backward taking twice as long as a forward, rank i works on the j-th micro-batch of group n at
 *
 * <pre>
 *   p(c) = g (k c + floor(c gcd(k, v) / v))       no two chunks meet: p(c) / g mod v differ
 *   F(c) = 3 (g v n + p(c) + j) + i
 *   B(c) = 3 (g v n + p(v-1) + p(v-1-c) + j) + 3 d - 2 - 2 i
 *
 *   held at most:  p(v-1) + d - i units           interleaved 1F1B: d (v-1) + 2 (d-1-i) + 1
 *   bubble:        3 (v (d-1) - (g-1) (v-1))      g = 1: that of 1F1B; g = d: of interleaved 1F1B
 * </pre>
 *
 * <p>The distance is the least at which the next chunk's turn comes after the last rank's: 3 g k >=
 * 2 d.
 *
 * <p>3 ranks of 2 chunks, 4 micro-batches (3F0 is stage 3's forward of micro-batch 0), a backward
 * as long as a forward:
 *
 * <pre>
 * rank 0 | 0F0 0F1     3F0 0F2 3F1         3B0 0F3 3F2     3B1     0B0 3F3 3B2     0B1     3B3 0B2     0B3
 * rank 1 |     1F0 1F1     4F0 1F2     4B0 4F1     1F3 4B1 4F2 1B0     4B2 4F3 1B1     4B3 1B2     1B3
 * rank 2 |         2F0 2F1     5F0 5B0 2F2     5F1 5B1 2F3 2B0 5F2 5B2 2B1     5F3 5B3 2B2     2B3
 * </pre>
 */
public final class GeneralizedInterleaved {
    private static final String NAME = "gis";

    /** A forward and a backward. */
    private static final int TURN = 3;

    private GeneralizedInterleaved() {}

    private record Visit(long time, boolean forward, int chunk, int microBatch) {}

    /**
     * The order of every rank; any number of ranks, chunks and micro-batches.
     *
     * @param groupSize micro-batches of a group; empty: 1, with which offloading half takes away
     *     most
     * @throws IllegalArgumentException for slices
     */
    public static Schedule schedule(PipelineShape shape, OptionalInt groupSize) {
        Requirements.wholeSequences(NAME, "seq1f1b-interleaved", shape);
        int group = groupSize.orElse(1);
        long[] places = places(shape, group);
        return Pipeline.loop(
                NAME,
                shape,
                (rank, program) -> {
                    for (Visit visit : visits(shape, rank, group, places)) {
                        if (visit.forward) {
                            program.forward(visit.chunk, visit.microBatch, 0);
                        } else {
                            program.backward(visit.chunk, visit.microBatch, 0);
                        }
                    }
                });
    }

    /** By chunk, when a group's turn comes. */
    static long[] places(PipelineShape shape, int group) {
        int chunks = shape.chunks();
        int distance = Math.ceilDiv(Math.ceilDiv(2 * shape.ranks(), TURN), group);
        int meetings = BigInteger.valueOf(distance).gcd(BigInteger.valueOf(chunks)).intValue();
        long[] places = new long[chunks];
        for (int chunk = 0; chunk < chunks; chunk++) {
            long shift = (long) chunk * meetings / chunks;
            places[chunk] = group * ((long) distance * chunk + shift);
        }
        return places;
    }

    private static List<Visit> visits(PipelineShape shape, int rank, int group, long[] places) {
        int last = shape.chunks() - 1;
        List<Visit> visits = new ArrayList<>();
        for (int m = 0; m < shape.microBatches(); m++) {
            long begin = (long) group * shape.chunks() * (m / group) + m % group;
            for (int chunk = 0; chunk <= last; chunk++) {
                long forward = TURN * (begin + places[chunk]) + rank;
                visits.add(new Visit(forward, true, chunk, m));
                long turns = begin + places[last] + places[last - chunk] + shape.ranks();
                visits.add(new Visit(TURN * turns - 2 - 2L * rank, false, chunk, m));
            }
        }
        visits.sort(Comparator.comparingLong(Visit::time));
        return visits;
    }
}
