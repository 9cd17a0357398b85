/**
 * The layers with their forward and backward over token slices: embedding, attention (whole, or
 * around a ring of context parts), MLP, norms, and the head with the loss. Start with {@link
 * dev.penstock.runtime.model.layers.StageLayers}.
 */
@NullMarked
package dev.penstock.runtime.model.layers;

import org.jspecify.annotations.NullMarked;
