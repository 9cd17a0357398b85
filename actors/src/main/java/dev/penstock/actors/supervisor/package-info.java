/**
 * The supervisor of a run: places ranks, drives two-phase steps, watches leases, explains stalls.
 */
@NullMarked
package dev.penstock.actors.supervisor;

import org.jspecify.annotations.NullMarked;
