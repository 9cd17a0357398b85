/**
 * Memory for what a forward keeps for its backward: slots per unit, blocks that are kept or
 * recomputed, and workspace.
 */
@NullMarked
package dev.penstock.runtime.model.activations;

import org.jspecify.annotations.NullMarked;
