/**
 * A run in one thread and virtual time: the real coordinator, ranks and mirrors over imagined
 * processes, messages, links and disks, under random faults that a seed repeats.
 */
@NullMarked
package dev.penstock.actors.simulation;

import org.jspecify.annotations.NullMarked;
