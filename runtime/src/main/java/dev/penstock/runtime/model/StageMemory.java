package dev.penstock.runtime.model;

/**
 * Bytes of device memory of a stage, or of all stages of a rank, by use.
 *
 * @param parameters master weights and their BF16 copies
 * @param gradients accumulated gradients
 * @param optimizer both moments
 * @param activations what the units in flight keep, and the step's tokens
 * @param scratch reused by every op
 * @param gathered whole parameters of shards, while they are here
 * @param accumulators gradients on their way to being shards
 * @param offloaded on disk, not counted in the total
 */
public record StageMemory(
        long parameters,
        long gradients,
        long optimizer,
        long activations,
        long scratch,
        long gathered,
        long accumulators,
        long offloaded) {
    static final StageMemory NOTHING = new StageMemory(0, 0, 0, 0, 0, 0, 0, 0);

    /** Of both together. */
    StageMemory plus(StageMemory other) {
        return new StageMemory(
                parameters + other.parameters,
                gradients + other.gradients,
                optimizer + other.optimizer,
                activations + other.activations,
                scratch + other.scratch,
                gathered + other.gathered,
                accumulators + other.accumulators,
                offloaded + other.offloaded);
    }

    public long total() {
        return parameters + gradients + optimizer + activations + scratch + gathered + accumulators;
    }
}
