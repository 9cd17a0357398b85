package dev.penstock.schedules.generate.base;

import java.util.Collections;
import java.util.List;
import java.util.OptionalDouble;
import java.util.OptionalInt;

/**
 * What a kind of schedule can be told beside the shape; a kind ignores what it has no use for.
 *
 * @param backwardOrder for gpipe
 * @param groupSize micro-batches that an interleaved kind sends through a chunk before it turns to
 *     the next; empty for the kind's default
 * @param costs for searched kinds: one entry for all ranks, or one per rank
 * @param memoryLimit for searched kinds: the most that a rank may hold, in activations of one
 *     micro-batch for all the rank's layers; empty for the kind's default
 */
public record GenerateOptions(
        BackwardOrder backwardOrder,
        OptionalInt groupSize,
        List<OpCosts> costs,
        OptionalDouble memoryLimit) {
    public GenerateOptions {
        costs = List.copyOf(costs);
        if (costs.isEmpty()) {
            throw new IllegalArgumentException("costs of all ranks or of each are needed");
        }
        if (groupSize.isPresent() && groupSize.getAsInt() < 1) {
            throw new IllegalArgumentException(
                    "a group has at least 1 micro-batch, got " + groupSize.getAsInt());
        }
        if (memoryLimit.isPresent() && !(memoryLimit.getAsDouble() > 0)) {
            throw new IllegalArgumentException(
                    "a rank holds more than 0 micro-batches, got a limit of "
                            + memoryLimit.getAsDouble());
        }
    }

    /** What a user gets who says nothing. */
    public static GenerateOptions defaults() {
        return new GenerateOptions(
                BackwardOrder.FIFO,
                OptionalInt.empty(),
                List.of(OpCosts.unit()),
                OptionalDouble.empty());
    }

    /** The same with this order of gpipe's backwards. */
    public GenerateOptions withBackwardOrder(BackwardOrder order) {
        return new GenerateOptions(order, groupSize, costs, memoryLimit);
    }

    /** The same with groups of so many micro-batches. */
    public GenerateOptions withGroupSize(int microBatches) {
        return new GenerateOptions(backwardOrder, OptionalInt.of(microBatches), costs, memoryLimit);
    }

    /** The same with these costs on every rank. */
    public GenerateOptions withCosts(OpCosts everyRank) {
        return withCosts(List.of(everyRank));
    }

    /** The same with the costs of each rank. */
    public GenerateOptions withCosts(List<OpCosts> perRank) {
        return new GenerateOptions(backwardOrder, groupSize, perRank, memoryLimit);
    }

    /** The same with a limit on what a rank holds, in micro-batches of all its layers. */
    public GenerateOptions withMemoryLimit(double microBatches) {
        return new GenerateOptions(
                backwardOrder, groupSize, costs, OptionalDouble.of(microBatches));
    }

    /**
     * The costs of every rank.
     *
     * @throws IllegalArgumentException if they are given for another number of ranks
     */
    public List<OpCosts> costsOf(int ranks) {
        if (costs.size() == 1) {
            return Collections.nCopies(ranks, costs.getFirst());
        }
        if (costs.size() != ranks) {
            throw new IllegalArgumentException(
                    "%d ranks need 1 or %d costs, got %d".formatted(ranks, ranks, costs.size()));
        }
        return costs;
    }
}
