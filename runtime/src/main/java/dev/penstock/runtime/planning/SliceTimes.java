package dev.penstock.runtime.planning;

import dev.penstock.schedules.plan.slices.SliceCost;

/**
 * The costs of slices, and their origin.
 *
 * @param cost of a slice on the slowest stage, forward and backward
 * @param tokens of a sequence
 * @param origin for people: hardware's law, or the fit to measurements with its error
 */
public record SliceTimes(SliceCost cost, int tokens, String origin) {}
