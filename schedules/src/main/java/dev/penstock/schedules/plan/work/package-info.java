/**
 * A model and its hardware as work: what a layout computes, sends and holds on every rank, in
 * nanoseconds and bytes.
 */
@NullMarked
package dev.penstock.schedules.plan.work;

import org.jspecify.annotations.NullMarked;
