/**
 * A model's tensors as other programs' folders hold them, in one file or several, whatever the
 * format. Start with {@link dev.penstock.runtime.weights.WeightsFiles}.
 */
@NullMarked
package dev.penstock.runtime.weights;

import org.jspecify.annotations.NullMarked;
