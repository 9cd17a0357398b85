/**
 * Benchmarks that print tables, with each figure next to that of a peer in the same run. No other
 * module depends on them.
 */
@NullMarked
package dev.penstock.benchmarks;

import org.jspecify.annotations.NullMarked;
