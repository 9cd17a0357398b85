/**
 * The contract of sums and gathers among ranks that hold parts or copies of the same thing. They
 * always add in rank order, so that no bit depends on which rank came first. There are three ways
 * to run them: {@link dev.penstock.actors.collective.shared}, {@link
 * dev.penstock.actors.collective.wire} and {@link dev.penstock.actors.collective.library}.
 */
@NullMarked
package dev.penstock.actors.collective;

import org.jspecify.annotations.NullMarked;
