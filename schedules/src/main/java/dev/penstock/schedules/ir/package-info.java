/**
 * The vocabulary of schedules: who runs what, in which order, as immutable data. Start with {@link
 * dev.penstock.schedules.ir.Op}.
 */
@NullMarked
package dev.penstock.schedules.ir;

import org.jspecify.annotations.NullMarked;
