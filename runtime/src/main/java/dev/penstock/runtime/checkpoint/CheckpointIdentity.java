package dev.penstock.runtime.checkpoint;

import dev.penstock.runtime.model.family.ModelConfig;

/**
 * The run's details in the manifest of each of its checkpoints.
 *
 * @param model shape
 * @param configHash of the run's resolved configuration
 * @param seed of the run
 */
public record CheckpointIdentity(ModelConfig model, String configHash, long seed) {}
