/**
 * Penstock as a library: trains, evaluates, continues texts and serves from a program of one's own,
 * with the classes of the command line and the same bits. {@link dev.penstock.Penstock} is where to
 * begin; every other package of this module is an implementation that may change.
 */
@NullMarked
package dev.penstock;

import org.jspecify.annotations.NullMarked;
