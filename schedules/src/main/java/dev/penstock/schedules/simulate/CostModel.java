package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;

/** What ops and ways cost. Costs are not negative; the same question gets the same answer. */
public interface CostModel {
    /**
     * How long an op keeps its rank, without waiting.
     *
     * @param position index of the op in the rank's program
     */
    long nanos(int rank, int position, Op op);

    /** How long a tensor is under way after it was sent, while both ranks are free to go on. */
    default long latencyNanos(Channel channel) {
        return 0;
    }

    /** A forward costs 1, a backward 2, everything else nothing. */
    static CostModel unit() {
        return of(1, 2, 0);
    }

    /**
     * The same for every unit.
     *
     * @param transfer how long a tensor is under way between two ranks; sending and receiving keep
     *     no rank
     */
    static CostModel of(long forward, long backward, long transfer) {
        return new UnitCosts(new long[] {forward}, new long[] {backward}, transfer);
    }

    /**
     * By token slice.
     *
     * @param forward entry s is the cost of slice s
     * @param backward entry s is the cost of slice s
     */
    static CostModel ofSlices(long[] forward, long[] backward, long transfer) {
        return new UnitCosts(forward.clone(), backward.clone(), transfer);
    }

    /**
     * What was measured in a run: computations as long as they took there, everything else free. A
     * simulation with it is the ideal that the run could have reached.
     *
     * @param measured must be of the schedule that is simulated
     */
    static CostModel measured(Timeline measured) {
        return (rank, position, op) ->
                op instanceof Op.Compute ? measured.durationNanos(rank, position) : 0;
    }
}
