package dev.penstock.schedules.generate.zerobubble;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;

/**
 * Writes an order with split backwards pass by pass, as it would run: the automatic scheduling of
 * Zero Bubble Pipeline Parallelism (Qi et al. 2023, section 3.1), told by the clock instead of by
 * the micro-batch. Whenever a rank is free, it sees what has arrived or is known to arrive:
 *
 * <ul>
 *   <li>forwards, until it is ahead of its backwards by its lead; then forwards and backwards for
 *       the input take turns
 *   <li>a backward for the weights where nothing else can start: in every gap that it fits into, in
 *       smaller gaps if the choices say so, and at once where a forward needs its memory
 *   <li>what is left of them at the end
 * </ul>
 *
 * How far to run ahead, what goes first and which gaps to fill are {@link Choices}; the search
 * tries many and keeps the best.
 */
final class SplitGreedy {
    /**
     * What a greedy order is free to choose.
     *
     * @param leads entry r is the most forwards that rank r may be ahead of its backwards, at least
     *     1
     * @param forwardFirst what goes first when a forward and a backward are both ready
     * @param gapQuarters how long a gap must be to be filled with a backward for the weights: so
     *     many quarters of it
     */
    record Choices(List<Integer> leads, boolean forwardFirst, int gapQuarters) {
        Choices {
            leads = List.copyOf(leads);
        }
    }

    private static final long NEVER = SplitTiming.NEVER;

    private final SplitProblem problem;
    private final Choices choices;
    private final int ranks;
    private final List<List<SplitPass>> order;
    private final long[][] forwardEnds;
    private final long[][] inputEnds;
    private final int[] forwards;
    private final int[] inputs;
    private final int[] weights;
    private final long[] clock;

    private SplitGreedy(SplitProblem problem, Choices choices) {
        this.problem = problem;
        this.choices = choices;
        ranks = problem.ranks();
        order = new ArrayList<>(Collections.nCopies(ranks, List.of()));
        order.replaceAll(_ -> new ArrayList<>(3 * problem.microBatches()));
        forwardEnds = new long[ranks][problem.microBatches()];
        inputEnds = new long[ranks][problem.microBatches()];
        forwards = new int[ranks];
        inputs = new int[ranks];
        weights = new int[ranks];
        clock = new long[ranks];
    }

    /**
     * The order of these choices.
     *
     * @param tooLong a makespan at which the order is of no interest
     * @return nothing if the order would take longer than that
     */
    static Optional<SplitOrder> order(SplitProblem problem, Choices choices, long tooLong) {
        var greedy = new SplitGreedy(problem, choices);
        return greedy.run(tooLong) ? Optional.of(new SplitOrder(greedy.order)) : Optional.empty();
    }

    /** Always lets the rank decide whose turn is first, so that all earlier arrivals are known. */
    private boolean run(long tooLong) {
        var turns = new EarliestRank(ranks);
        turns.set(0, 0);
        while (turns.time() != NEVER) {
            int rank = turns.rank();
            decide(rank, turns.time());
            if (clock[rank] + leftNanos(rank) > tooLong) {
                return false;
            }
            for (int r = Math.max(0, rank - 1); r <= Math.min(ranks - 1, rank + 1); r++) {
                turns.set(r, decisionTime(r));
            }
        }
        return true;
    }

    private long leftNanos(int rank) {
        int all = problem.microBatches();
        return problem.workNanos(
                rank, all - forwards[rank], all - inputs[rank], all - weights[rank]);
    }

    private int live(int rank) {
        return forwards[rank] - weights[rank];
    }

    private boolean owesWeight(int rank) {
        return weights[rank] < inputs[rank];
    }

    /** When the rank can next do anything that is known now. */
    private long decisionTime(int rank) {
        if (owesWeight(rank)) {
            return clock[rank];
        }
        return Math.max(clock[rank], Math.min(nextForward(rank), nextInput(rank)));
    }

    /**
     * When the next forward that the lead allows arrives; if memory is short, then only if a
     * backward for the weights can make room.
     */
    private long nextForward(int rank) {
        int f = forwards[rank];
        if (f == problem.microBatches()
                || f - inputs[rank] >= choices.leads().get(rank)
                || (live(rank) >= problem.limit() && !owesWeight(rank))) {
            return NEVER;
        }
        if (rank == 0) {
            return 0;
        }
        return f < forwards[rank - 1]
                ? forwardEnds[rank - 1][f] + problem.hopNanos(rank - 1)
                : NEVER;
    }

    /** When the next gradient arrives. */
    private long nextInput(int rank) {
        int i = inputs[rank];
        if (i == forwards[rank]) {
            return NEVER;
        }
        if (rank == ranks - 1) {
            return forwardEnds[rank][i];
        }
        return i < inputs[rank + 1] ? inputEnds[rank + 1][i] + problem.hopNanos(rank + 1) : NEVER;
    }

    private void decide(int rank, long now) {
        long forward = nextForward(rank);
        long input = nextInput(rank);
        boolean full = live(rank) >= problem.limit();
        if (input <= now && !(choices.forwardFirst() && forward <= now)) {
            put(rank, SplitPass.BACKWARD_INPUT, now);
        } else if (forward <= now) {
            put(rank, full ? SplitPass.BACKWARD_WEIGHT : SplitPass.FORWARD, now);
        } else if ((full && forward <= input) || fills(rank, Math.min(forward, input) - now)) {
            put(rank, SplitPass.BACKWARD_WEIGHT, now);
        } else if (input <= forward) {
            put(rank, SplitPass.BACKWARD_INPUT, input);
        } else {
            put(rank, SplitPass.FORWARD, forward);
        }
    }

    /** Whether the next gap is for a backward for the weights. */
    private boolean fills(int rank, long gap) {
        double needed =
                choices.gapQuarters() / 4.0 * problem.nanos(rank, SplitPass.BACKWARD_WEIGHT);
        return owesWeight(rank) && gap >= needed;
    }

    private void put(int rank, SplitPass pass, long start) {
        order.get(rank).add(pass);
        clock[rank] = start + problem.nanos(rank, pass);
        switch (pass) {
            case FORWARD -> forwardEnds[rank][forwards[rank]++] = clock[rank];
            case BACKWARD_INPUT -> inputEnds[rank][inputs[rank]++] = clock[rank];
            case BACKWARD_WEIGHT -> weights[rank]++;
        }
    }
}
