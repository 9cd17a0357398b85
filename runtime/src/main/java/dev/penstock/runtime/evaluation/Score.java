package dev.penstock.runtime.evaluation;

/**
 * What a model made of a window.
 *
 * @param logLikelihood sum over the targets, natural logarithms, in their order
 * @param greedy whether every target is the likeliest token at its place
 */
public record Score(double logLikelihood, boolean greedy) {}
