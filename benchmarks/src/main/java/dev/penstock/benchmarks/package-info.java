/**
 * Benchmarks that print tables: each figure beside that of a peer in the same run. Nobody depends
 * on them.
 */
@NullMarked
package dev.penstock.benchmarks;

import org.jspecify.annotations.NullMarked;
