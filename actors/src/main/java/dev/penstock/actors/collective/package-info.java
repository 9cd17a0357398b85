/**
 * Sums and gathers among ranks that hold parts or copies of the same thing. They always add in rank
 * order, so that no bit depends on who came first.
 */
@NullMarked
package dev.penstock.actors.collective;

import org.jspecify.annotations.NullMarked;
