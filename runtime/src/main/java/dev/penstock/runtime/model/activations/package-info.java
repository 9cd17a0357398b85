/**
 * What a forward keeps for its backward: slots per unit, blocks that are kept or computed again,
 * and workspace.
 */
@NullMarked
package dev.penstock.runtime.model.activations;

import org.jspecify.annotations.NullMarked;
