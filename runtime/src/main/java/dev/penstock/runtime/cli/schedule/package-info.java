/**
 * Commands about orders of work: generate, show, draw, validate, simulate, compare, convert, diff,
 * slices.
 */
@NullMarked
package dev.penstock.runtime.cli.schedule;

import org.jspecify.annotations.NullMarked;
