/**
 * What a training step on a GPU has to move and to compute, kernel by kernel, and how long cards
 * would take for it.
 */
@NullMarked
package dev.penstock.benchmarks.roofline;

import org.jspecify.annotations.NullMarked;
