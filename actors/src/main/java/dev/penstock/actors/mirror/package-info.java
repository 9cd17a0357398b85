/**
 * The neighbour replica: every rank's parameters and optimizer state are kept a second time by a
 * rank in another process, equal bit for bit, so that a process's death loses no committed step.
 */
@NullMarked
package dev.penstock.actors.mirror;

import org.jspecify.annotations.NullMarked;
