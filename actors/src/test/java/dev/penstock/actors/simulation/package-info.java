/**
 * A run in virtual time, of which one thread runs at a time: the real coordinator, ranks, mirrors
 * and collectives over imagined processes, messages, links and disks, under random faults that a
 * seed repeats.
 */
@NullMarked
package dev.penstock.actors.simulation;

import org.jspecify.annotations.NullMarked;
