/**
 * Trains under a random schedule of faults and proves that they changed nothing: neither a bit of
 * the loss nor how often a gradient was applied.
 */
@NullMarked
package dev.penstock.runtime.chaos;

import org.jspecify.annotations.NullMarked;
