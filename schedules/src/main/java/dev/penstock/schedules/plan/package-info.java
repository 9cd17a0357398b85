/**
 * Decides what to run: whole plans for a model on given hardware, searched, proved and simulated. A
 * request comes in, a report goes out. Start with {@link dev.penstock.schedules.plan.Planner}. No
 * other package of this module sees it.
 */
@NullMarked
package dev.penstock.schedules.plan;

import org.jspecify.annotations.NullMarked;
