package dev.penstock.schedules.generate;

import dev.penstock.schedules.generate.base.OpCosts;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The shortest makespan of any order with split backwards, by looking at all of them: every order
 * of every rank, combined with every order of every other rank.
 */
public final class BruteForceOrders {
    /** An op is 3 x micro-batch + one of these. */
    private static final int FORWARD = 0;

    private static final int INPUT = 1;
    private static final int WEIGHT = 2;

    private final int ranks;
    private final int microBatches;
    private final int limit;
    private final List<OpCosts> costs;

    /** Whether each kind of op takes the micro-batches in their order. */
    private final boolean inOrder;

    private final List<int[]> ofOneRank = new ArrayList<>();
    private long best = Long.MAX_VALUE;

    private BruteForceOrders(int microBatches, int limit, List<OpCosts> costs, boolean inOrder) {
        this.ranks = costs.size();
        this.microBatches = microBatches;
        this.limit = limit;
        this.costs = costs;
        this.inOrder = inOrder;
    }

    /**
     * Returns the shortest makespan of all orders.
     *
     * @param limit the most micro-batches that a rank may hold
     * @param costs entry r is what the ops of rank r cost
     */
    public static long shortest(int microBatches, int limit, List<OpCosts> costs, boolean inOrder) {
        var all = new BruteForceOrders(microBatches, limit, costs, inOrder);
        all.collect(new int[3 * microBatches], 0, 0);
        all.combine(new int[all.ranks][], 0);
        return all.best;
    }

    private void collect(int[] word, int length, int live) {
        if (length == word.length) {
            ofOneRank.add(word.clone());
            return;
        }
        for (int op = 0; op < word.length; op++) {
            int kind = op % 3;
            boolean open = !contains(word, length, op);
            boolean ready = kind == FORWARD ? live < limit : contains(word, length, op - 1);
            boolean turn = !inOrder || op < 3 || contains(word, length, op - 3);
            if (open && ready && turn) {
                word[length] = op;
                int change = kind == FORWARD ? 1 : kind == WEIGHT ? -1 : 0;
                collect(word, length + 1, live + change);
            }
        }
    }

    private static boolean contains(int[] word, int length, int op) {
        for (int i = 0; i < length; i++) {
            if (word[i] == op) {
                return true;
            }
        }
        return false;
    }

    private void combine(int[][] order, int rank) {
        if (rank == ranks) {
            best = Math.min(best, makespan(order));
            return;
        }
        for (int[] word : ofOneRank) {
            order[rank] = word;
            combine(order, rank + 1);
        }
    }

    private long makespan(int[][] order) {
        long[][] ends = new long[ranks][3 * microBatches];
        for (long[] row : ends) {
            Arrays.fill(row, -1);
        }
        int[] next = new int[ranks];
        long[] clock = new long[ranks];
        boolean moved = true;
        while (moved) {
            moved = false;
            for (int rank = 0; rank < ranks; rank++) {
                while (next[rank] < order[rank].length) {
                    int op = order[rank][next[rank]];
                    long ready = ready(ends, rank, op);
                    if (ready < 0) {
                        break;
                    }
                    clock[rank] = Math.max(clock[rank], ready) + length(rank, op);
                    ends[rank][op] = clock[rank];
                    next[rank]++;
                    moved = true;
                }
            }
        }
        boolean finished = Arrays.stream(next).allMatch(n -> n == 3 * microBatches);
        return finished ? Arrays.stream(clock).max().orElseThrow() : Long.MAX_VALUE;
    }

    /** When the op's inputs are ready; negative if they never are. */
    private long ready(long[][] ends, int rank, int op) {
        int giver =
                switch (op % 3) {
                    case FORWARD -> rank - 1;
                    case INPUT -> rank + 1;
                    default -> -1;
                };
        if (giver < 0 || giver == ranks) {
            return 0;
        }
        return ends[giver][op] < 0 ? -1 : ends[giver][op] + costs.get(giver).communicationNanos();
    }

    private long length(int rank, int op) {
        OpCosts own = costs.get(rank);
        return switch (op % 3) {
            case FORWARD -> own.forwardNanos();
            case INPUT -> own.backwardInputNanos();
            default -> own.backwardWeightNanos();
        };
    }
}
