package dev.penstock.runtime.model.shape;

import dev.penstock.actors.spi.MemoryUse;

import java.util.List;

/**
 * Bytes of device memory of a stage, or of all stages of a rank, by use.
 *
 * @param parameters master weights and their BF16 copies
 * @param gradients accumulated gradients
 * @param optimizer both moments
 * @param activations what the units in flight keep, and the step's tokens
 * @param keyValues queries, keys and values of the micro-batches in flight, and their gradients
 * @param scratch memory reused by every op
 * @param gathered whole parameters gathered from shards, while they are present
 * @param accumulators gradients that have not been reduced to shards yet
 * @param offloaded on disk, not counted in the total
 * @param onHost activations that left the device, not counted in the total
 */
public record StageMemory(
        long parameters,
        long gradients,
        long optimizer,
        long activations,
        long keyValues,
        long scratch,
        long gathered,
        long accumulators,
        long offloaded,
        long onHost) {
    public static final StageMemory NOTHING = new StageMemory(0, 0, 0, 0, 0, 0, 0, 0, 0, 0);

    /** Returns the sum of both. */
    public StageMemory plus(StageMemory other) {
        return new StageMemory(
                parameters + other.parameters,
                gradients + other.gradients,
                optimizer + other.optimizer,
                activations + other.activations,
                keyValues + other.keyValues,
                scratch + other.scratch,
                gathered + other.gathered,
                accumulators + other.accumulators,
                offloaded + other.offloaded,
                onHost + other.onHost);
    }

    public long total() {
        return uses().stream().mapToLong(MemoryUse::peakBytes).sum();
    }

    /** Returns each size by the name of its scope. */
    public List<MemoryUse> uses() {
        return List.of(
                new MemoryUse(MemoryUse.PARAMETERS, parameters),
                new MemoryUse(MemoryUse.GRADIENTS, gradients),
                new MemoryUse(MemoryUse.OPTIMIZER, optimizer),
                new MemoryUse(MemoryUse.ACTIVATIONS, activations),
                new MemoryUse(MemoryUse.KEY_VALUES, keyValues),
                new MemoryUse(MemoryUse.SCRATCH, scratch),
                new MemoryUse(MemoryUse.GATHERED, gathered),
                new MemoryUse(MemoryUse.ACCUMULATORS, accumulators));
    }
}
