package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.Arrays;
import java.util.List;

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

    /**
     * How long a tensor keeps the link between the two ranks busy. Tensors of one rank to one other
     * leave one after another.
     *
     * @param unit the unit that the tensor is for: {@code channel.toStage()} is its stage
     */
    default long occupancyNanos(Channel channel, WorkUnit unit) {
        return 0;
    }

    /**
     * How long a gather, a reduction, an offload or a reload is under way beside the computations
     * of its rank. A rank's gathers and reductions run one after another, and so do its offloads
     * and reloads on a link of their own to the host.
     */
    default long backgroundNanos(int rank, Op op) {
        return 0;
    }

    /**
     * Costs of ranks of which each has a speed of its own; transfers take no time.
     *
     * @param ranks entry r says what ops take on rank r
     */
    static CostModel ofRanks(List<? extends CostModel> ranks) {
        List<CostModel> known = List.copyOf(ranks);
        return new CostModel() {
            @Override
            public long nanos(int rank, int position, Op op) {
                return known.get(rank).nanos(rank, position, op);
            }

            @Override
            public long backgroundNanos(int rank, Op op) {
                return known.get(rank).backgroundNanos(rank, op);
            }
        };
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
        return ofSlices(new long[] {forward}, new long[] {backward}, transfer);
    }

    /**
     * The same for every unit; a full backward costs both its parts.
     *
     * @param transfer as in {@link #of}
     */
    static CostModel split(long forward, long backwardInput, long backwardWeight, long transfer) {
        return new SlicedCosts(
                new long[] {forward},
                new long[] {backwardInput + backwardWeight},
                new long[] {backwardInput},
                transfer);
    }

    /**
     * By token slice; where a backward is split, half of it is for the input.
     *
     * @param forward entry s is the cost of slice s
     * @param backward entry s is the cost of slice s
     */
    static CostModel ofSlices(long[] forward, long[] backward, long transfer) {
        long[] half = Arrays.stream(backward).map(cost -> cost / 2).toArray();
        return new SlicedCosts(forward.clone(), backward.clone(), half, transfer);
    }
}
