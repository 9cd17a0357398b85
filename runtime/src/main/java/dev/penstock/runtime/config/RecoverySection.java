package dev.penstock.runtime.config;

/**
 * Section {@code recovery}: how a run goes on after the death of a part of it.
 *
 * @param mirror whether every rank's parameters and optimizer state are kept a second time by the
 *     next rank, so that a death loses no committed step
 */
public record RecoverySection(
        @Setting(is = "false", doc = "keep every rank's state a second time on its neighbour")
                boolean mirror) {}
