package dev.penstock.runtime.cli;

import dev.penstock.schedules.plan.SliceCost;

/**
 * What slices cost, and how that is known.
 *
 * @param cost of a slice on the slowest stage, forward and backward
 * @param tokens of a sequence
 * @param origin for people: hardware's law, or the fit to measurements with its error
 */
record SliceTimes(SliceCost cost, int tokens, String origin) {}
