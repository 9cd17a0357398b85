/**
 * What happens when a schedule runs: the one execution of the runtime's semantics, under a cost
 * model and bounded channels, with times, bubbles, tensors in flight and peak activations. Start
 * with {@link dev.penstock.schedules.simulate.ScheduleSimulator}.
 */
@NullMarked
package dev.penstock.schedules.simulate;

import org.jspecify.annotations.NullMarked;
