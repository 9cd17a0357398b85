package dev.penstock.schedules.generate;

import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.generate.zerobubble.SplitOrder;
import dev.penstock.schedules.generate.zerobubble.SplitPass;
import dev.penstock.schedules.generate.zerobubble.SplitProblem;
import java.util.Arrays;
import java.util.List;

/** When the passes of an order start, by going through all of them until nothing changes. */
public final class NaiveStarts {
    private static final long UNKNOWN = -1;

    private final SplitOrder order;
    private final SplitProblem problem;

    /** Entry [r][p]: of rank r's pass p. */
    private final long[][] starts;

    private NaiveStarts(SplitOrder order, SplitProblem problem) {
        this.order = order;
        this.problem = problem;
        this.starts = new long[problem.ranks()][3 * problem.microBatches()];
        for (long[] row : starts) {
            Arrays.fill(row, UNKNOWN);
        }
    }

    public static NaiveStarts of(SplitOrder order, SplitProblem problem) {
        var naive = new NaiveStarts(order, problem);
        boolean changed = true;
        while (changed) {
            changed = false;
            for (int rank = 0; rank < problem.ranks(); rank++) {
                for (int p = 0; p < naive.starts[rank].length; p++) {
                    changed |= naive.find(rank, p);
                }
            }
        }
        return naive;
    }

    private boolean find(int rank, int p) {
        if (starts[rank][p] != UNKNOWN) {
            return false;
        }
        SplitPass pass = order.ranks().get(rank).get(p);
        long own = p == 0 ? 0 : end(rank, p - 1);
        long given =
                switch (pass) {
                    case FORWARD -> rank == 0 ? 0 : arrival(rank - 1, rank, p, pass);
                    case BACKWARD_INPUT ->
                            rank == problem.ranks() - 1
                                    ? end(rank, position(rank, SplitPass.FORWARD, nth(rank, p)))
                                    : arrival(rank + 1, rank, p, pass);
                    case BACKWARD_WEIGHT -> 0;
                };
        if (own == UNKNOWN || given == UNKNOWN) {
            return false;
        }
        starts[rank][p] = Math.max(own, given);
        return true;
    }

    private long arrival(int giver, int rank, int p, SplitPass pass) {
        long end = end(giver, position(giver, pass, nth(rank, p)));
        return end == UNKNOWN ? UNKNOWN : end + problem.costs().get(giver).communicationNanos();
    }

    /** How many of its kind are before it. */
    private int nth(int rank, int p) {
        List<SplitPass> passes = order.ranks().get(rank);
        return (int) passes.subList(0, p).stream().filter(passes.get(p)::equals).count();
    }

    private int position(int rank, SplitPass pass, int nth) {
        List<SplitPass> passes = order.ranks().get(rank);
        for (int p = 0; p < passes.size(); p++) {
            if (passes.get(p) == pass && nth(rank, p) == nth) {
                return p;
            }
        }
        throw new IllegalArgumentException("no " + pass + " " + nth + " on rank " + rank);
    }

    public boolean isStuck() {
        return Arrays.stream(starts).flatMapToLong(Arrays::stream).anyMatch(s -> s == UNKNOWN);
    }

    public long start(int rank, int p) {
        return starts[rank][p];
    }

    public long end(int rank, int p) {
        OpCosts own = problem.costs().get(rank);
        long nanos =
                switch (order.ranks().get(rank).get(p)) {
                    case FORWARD -> own.forwardNanos();
                    case BACKWARD_INPUT -> own.backwardInputNanos();
                    case BACKWARD_WEIGHT -> own.backwardWeightNanos();
                };
        return starts[rank][p] == UNKNOWN ? UNKNOWN : starts[rank][p] + nanos;
    }

    /** From the first start to the last end of a rank. */
    public long span(int rank) {
        return end(rank, starts[rank].length - 1) - starts[rank][0];
    }
}
