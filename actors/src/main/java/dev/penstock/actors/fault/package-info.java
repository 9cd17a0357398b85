/**
 * Faults on purpose: what can be injected into a run, and the places where the run asks whether one
 * is due. A run without faults pays an empty call per op.
 */
@NullMarked
package dev.penstock.actors.fault;

import org.jspecify.annotations.NullMarked;
