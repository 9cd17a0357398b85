package dev.penstock.schedules.generate.vshaped;

import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.generate.base.Pipeline;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.PriorityQueue;

/**
 * Runs forwards and backwards for the input in a given order, each as early as its tensors and the
 * memory allow, and puts the backwards for the weights where a rank would wait. Linear in ops, but
 * for a queue of ranks.
 */
final class VShapedOrder {
    private static final long NEVER = Long.MAX_VALUE;

    private record Turn(long time, int rank) implements Comparable<Turn> {
        @Override
        public int compareTo(Turn other) {
            return time != other.time
                    ? Long.compare(time, other.time)
                    : Integer.compare(rank, other.rank);
        }
    }

    private final VUnits units;
    private final List<OpCosts> costs;
    private final int limit;
    private final WeightFilling filling;
    private final int[][] given;
    private final int[][] written;
    private final int[] writtenCount;
    private final List<ArrayDeque<Integer>> weights = new ArrayList<>();
    private final int[] position;
    private final int[] alive;

    /** By unit: when it ends, or {@link #NEVER} while that is not known. */
    private final long[] end;

    private final PriorityQueue<Turn> turns = new PriorityQueue<>();

    /** Ranks without a turn wait for a tensor whose giver has not started. */
    private final boolean[] hasTurn;

    private long makespan;

    /**
     * @param given entry r is the order of rank r, with its weights if they are filled in as given
     * @param costs entry r is rank r
     * @param limit chunks that a rank may hold
     */
    VShapedOrder(
            VUnits units, int[][] given, List<OpCosts> costs, int limit, WeightFilling filling) {
        this.units = units;
        this.given = given;
        this.costs = costs;
        this.limit = limit;
        this.filling = filling;
        this.written = new int[units.ranks()][units.perRank()];
        this.writtenCount = new int[units.ranks()];
        this.hasTurn = new boolean[units.ranks()];
        this.position = new int[units.ranks()];
        this.alive = new int[units.ranks()];
        this.end = new long[units.ranks() * units.perRank()];
        Arrays.fill(end, NEVER);
        for (int rank = 0; rank < units.ranks(); rank++) {
            weights.add(new ArrayDeque<>());
            addTurn(0, rank);
        }
        while (!turns.isEmpty()) {
            Turn turn = turns.remove();
            hasTurn[turn.rank] = false;
            take(turn.rank, turn.time);
        }
    }

    long makespan() {
        return makespan;
    }

    /** Entry r is the order of rank r, with its weights. */
    int[][] orders() {
        return written;
    }

    void write(int rank, Pipeline.Program program) {
        for (int unit : written[rank]) {
            units.pass(unit).write(program, units.microBatch(unit));
        }
    }

    private void take(int rank, long now) {
        ArrayDeque<Integer> waiting = weights.get(rank);
        boolean more = position[rank] < given[rank].length;
        int next = more ? given[rank][position[rank]] : VUnits.NONE;
        long ready = more ? readyAt(next) : NEVER;
        boolean full = more && units.pass(next).isForward() && alive[rank] >= limit;
        if (ready <= now && !full) {
            position[rank]++;
            run(rank, next, now);
        } else if (!waiting.isEmpty() && (full || fits(rank, now, ready))) {
            run(rank, waiting.remove(), now);
        } else if (full) {
            throw new IllegalStateException(
                    "rank %d holds %d chunks and none can go".formatted(rank, limit));
        } else if (ready != NEVER) {
            addTurn(ready, rank);
        }
        // else: whoever gives the next tensor will wake this rank
    }

    private void addTurn(long time, int rank) {
        turns.add(new Turn(time, rank));
        hasTurn[rank] = true;
    }

    private boolean fits(int rank, long now, long ready) {
        return switch (filling) {
            case AS_GIVEN -> false;
            case WHILE_WAITING -> true;
            case IF_IT_FITS ->
                    ready == NEVER || now + costs.get(rank).backwardWeightNanos() <= ready;
        };
    }

    private long readyAt(int unit) {
        int giver = units.giver(unit);
        if (giver == VUnits.NONE) {
            return 0;
        }
        int from = units.rank(giver);
        boolean travels = from != units.rank(unit);
        return end[giver] == NEVER || !travels
                ? end[giver]
                : end[giver] + costs.get(from).communicationNanos();
    }

    private void run(int rank, int unit, long now) {
        VPass pass = units.pass(unit);
        OpCosts cost = costs.get(rank);
        written[rank][writtenCount[rank]++] = unit;
        if (pass.isForward()) {
            alive[rank]++;
            end[unit] = now + cost.forwardNanos();
        } else if (pass.isWeight()) {
            alive[rank]--;
            end[unit] = now + cost.backwardWeightNanos();
        } else {
            if (filling != WeightFilling.AS_GIVEN) {
                weights.get(rank).add(units.index(rank, pass.weight(), units.microBatch(unit)));
            }
            end[unit] = now + cost.backwardInputNanos();
        }
        makespan = Math.max(makespan, end[unit]);
        addTurn(end[unit], rank);
        wake(units.takerElsewhere(unit));
    }

    /** Gives a rank its turn if it stands idle for want of this unit's tensor. */
    private void wake(int taker) {
        if (taker == VUnits.NONE) {
            return;
        }
        int rank = units.rank(taker);
        boolean next = position[rank] < given[rank].length && given[rank][position[rank]] == taker;
        if (next && !hasTurn[rank]) {
            addTurn(readyAt(taker), rank);
        }
    }
}
