package dev.penstock.runtime.metrics;

import dev.penstock.actors.spi.StepTokens;
import java.util.function.LongToDoubleFunction;

/**
 * The properties of a run's steps that are known before they are done.
 *
 * @param tokens that each trains on
 * @param learningRate of a step, from 1
 * @param layout the same text for steps whose ranks did the same work with the same memory
 */
public record ConfiguredSteps(
        StepTokens tokens, LongToDoubleFunction learningRate, String layout) {}
