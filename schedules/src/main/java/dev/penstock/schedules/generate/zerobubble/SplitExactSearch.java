package dev.penstock.schedules.generate.zerobubble;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * Tries every order of a very small problem, branch and bound: passes are appended in the order in
 * which they start, and a beginning is dropped as soon as its bound is no better than the best
 * order known.
 */
final class SplitExactSearch {
    private static final long NEVER = SplitTiming.NEVER;

    private final SplitProblem problem;
    private final int ranks;
    private final int microBatches;
    private final long[][] forwardEnds;
    private final long[][] inputEnds;
    private final int[] forwards;
    private final int[] inputs;
    private final int[] weights;
    private final long[] clock;
    private final List<List<SplitPass>> order = new ArrayList<>();
    private Optional<SplitOrder> best = Optional.empty();
    private long bestMakespan;
    private long beginningsLeft;

    private SplitExactSearch(SplitProblem problem, long makespan, long beginnings) {
        this.problem = problem;
        bestMakespan = makespan;
        beginningsLeft = beginnings;
        ranks = problem.ranks();
        microBatches = problem.microBatches();
        forwardEnds = new long[ranks][microBatches];
        inputEnds = new long[ranks][microBatches];
        forwards = new int[ranks];
        inputs = new int[ranks];
        weights = new int[ranks];
        clock = new long[ranks];
        for (int rank = 0; rank < ranks; rank++) {
            order.add(new ArrayList<>());
        }
    }

    /**
     * The shortest order that is shorter than a known one.
     *
     * @param makespan of the known order
     * @param beginnings how many to look at before giving up with the best so far
     * @return nothing if there is none, or none was found
     */
    static Optional<SplitOrder> shorterThan(SplitProblem problem, long makespan, long beginnings) {
        var search = new SplitExactSearch(problem, makespan, beginnings);
        search.extend(0, 0);
        return search.best;
    }

    /**
     * @param now when the last pass started
     * @param lastRank where; at the same time only this and higher ranks go on
     */
    private void extend(long now, int lastRank) {
        long bound = bound();
        if (bound >= bestMakespan || beginningsLeft-- <= 0) {
            return;
        }
        boolean complete = true;
        for (int rank = 0; rank < ranks; rank++) {
            complete &= weights[rank] == microBatches;
            for (SplitPass pass : SplitPass.values()) {
                long start = Math.max(clock[rank], arrival(rank, pass));
                boolean inTurn = start > now || (start == now && rank >= lastRank);
                if (start != NEVER && inTurn && !wastes(rank, pass, start)) {
                    tryNext(rank, pass, start);
                }
            }
        }
        if (complete) {
            bestMakespan = bound;
            best = Optional.of(new SplitOrder(order));
        }
    }

    private void tryNext(int rank, SplitPass pass, long start) {
        long before = clock[rank];
        clock[rank] = start + problem.nanos(rank, pass);
        order.get(rank).add(pass);
        switch (pass) {
            case FORWARD -> forwardEnds[rank][forwards[rank]++] = clock[rank];
            case BACKWARD_INPUT -> inputEnds[rank][inputs[rank]++] = clock[rank];
            case BACKWARD_WEIGHT -> weights[rank]++;
        }
        extend(start, rank);
        switch (pass) {
            case FORWARD -> forwards[rank]--;
            case BACKWARD_INPUT -> inputs[rank]--;
            case BACKWARD_WEIGHT -> weights[rank]--;
        }
        order.get(rank).removeLast();
        clock[rank] = before;
    }

    /** When the next pass of a kind could start as far as others are concerned. */
    private long arrival(int rank, SplitPass pass) {
        return switch (pass) {
            case FORWARD -> {
                int f = forwards[rank];
                if (f == microBatches || f - weights[rank] == problem.limit()) {
                    yield NEVER;
                }
                if (rank == 0) {
                    yield 0;
                }
                yield f < forwards[rank - 1]
                        ? forwardEnds[rank - 1][f] + problem.hopNanos(rank - 1)
                        : NEVER;
            }
            case BACKWARD_INPUT -> {
                int i = inputs[rank];
                if (i == forwards[rank]) {
                    yield NEVER;
                }
                if (rank == ranks - 1) {
                    yield forwardEnds[rank][i];
                }
                yield i < inputs[rank + 1]
                        ? inputEnds[rank + 1][i] + problem.hopNanos(rank + 1)
                        : NEVER;
            }
            case BACKWARD_WEIGHT -> weights[rank] < inputs[rank] ? 0 : NEVER;
        };
    }

    /** Whether a backward would fit into the gap before this pass: then it is better there. */
    private boolean wastes(int rank, SplitPass pass, long start) {
        for (SplitPass filler : List.of(SplitPass.BACKWARD_INPUT, SplitPass.BACKWARD_WEIGHT)) {
            long arrival = arrival(rank, filler);
            if (filler != pass
                    && arrival != NEVER
                    && Math.max(clock[rank], arrival) + problem.nanos(rank, filler) <= start) {
                return true;
            }
        }
        return false;
    }

    /** No completion of this beginning ends before; the makespan itself if it is complete. */
    private long bound() {
        long bound = 0;
        long home = 0;
        for (int rank = 0; rank < ranks; rank++) {
            if (rank > 0) {
                home += problem.nanos(rank - 1, SplitPass.BACKWARD_INPUT) + problem.hopNanos(rank);
            }
            int f = microBatches - forwards[rank];
            int i = microBatches - inputs[rank];
            int w = microBatches - weights[rank];
            bound = Math.max(bound, clock[rank] + problem.workNanos(rank, f, i, w));
            if (i > 0) {
                int forced = Math.max(0, w - problem.limit());
                long lastHome = clock[rank] + problem.workNanos(rank, f, i, forced) + home;
                bound = Math.max(bound, lastHome + problem.nanos(0, SplitPass.BACKWARD_WEIGHT));
            }
        }
        return bound;
    }
}
