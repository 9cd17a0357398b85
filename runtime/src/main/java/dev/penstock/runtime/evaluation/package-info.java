/**
 * Evaluation by published protocols: what each task makes of a text, which of a model's guesses
 * count, and the figures that follow. Knows no model: likelihoods come from elsewhere.
 */
@NullMarked
package dev.penstock.runtime.evaluation;

import org.jspecify.annotations.NullMarked;
