package dev.penstock.schedules.generate.zerobubble;

import dev.penstock.schedules.generate.base.OpCosts;
import java.util.List;

/**
 * What a search for an order with split backwards on a plain pipeline is given.
 *
 * @param microBatches of a step
 * @param limit the most micro-batches that a rank may hold, from the start of the forward to the
 *     end of the backward for the weights
 * @param costs entry r is what the ops of rank r cost
 */
public record SplitProblem(int microBatches, int limit, List<OpCosts> costs) {
    public SplitProblem {
        costs = List.copyOf(costs);
    }

    public int ranks() {
        return costs.size();
    }

    long nanos(int rank, SplitPass pass) {
        OpCosts own = costs.get(rank);
        return switch (pass) {
            case FORWARD -> own.forwardNanos();
            case BACKWARD_INPUT -> own.backwardInputNanos();
            case BACKWARD_WEIGHT -> own.backwardWeightNanos();
        };
    }

    /** How long a tensor is under way from this rank to a neighbour. */
    long hopNanos(int fromRank) {
        return costs.get(fromRank).communicationNanos();
    }

    /** The passes of so many micro-batches on one rank. */
    long workNanos(int rank, int forwards, int inputs, int weights) {
        OpCosts own = costs.get(rank);
        return forwards * own.forwardNanos()
                + inputs * own.backwardInputNanos()
                + weights * own.backwardWeightNanos();
    }
}
