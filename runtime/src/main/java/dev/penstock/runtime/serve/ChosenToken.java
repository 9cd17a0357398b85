package dev.penstock.runtime.serve;

import dev.penstock.runtime.inference.LogProbabilities;

/**
 * A token of a choice with its log-probabilities.
 *
 * @param offset characters of the choice before it
 */
record ChosenToken(int offset, LogProbabilities chances) {}
