/**
 * Measures what a machine does in a second: products, memory, links between ranks, disk; and says
 * what a training may expect of it.
 */
@NullMarked
package dev.penstock.runtime.speed;

import org.jspecify.annotations.NullMarked;
