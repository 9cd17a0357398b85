/**
 * What of a run fits into memory, and at what cost: keeping activations, running forwards again,
 * sending activations to the host, swapping, dividing. Everything is proved by what proves a run.
 */
@NullMarked
package dev.penstock.runtime.memory;

import org.jspecify.annotations.NullMarked;
