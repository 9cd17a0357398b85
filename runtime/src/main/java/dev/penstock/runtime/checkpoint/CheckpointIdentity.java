package dev.penstock.runtime.checkpoint;

/**
 * What a run writes into the manifest of each of its checkpoints.
 *
 * @param model shape
 * @param configHash of the run's resolved configuration
 * @param seed of the run
 */
public record CheckpointIdentity(Gpt2Config model, String configHash, long seed) {}
