/**
 * Decides what to run: token slices, cuts of the layers into stages, and whole plans for a model on
 * a cluster. Start at {@link dev.penstock.schedules.plan.Planner}. Nobody in this module sees it.
 */
@NullMarked
package dev.penstock.schedules.plan;

import org.jspecify.annotations.NullMarked;
