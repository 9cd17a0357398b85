/**
 * What a pipeline does whose ranks come and go: a trace of preemptions and joins, replayed under
 * rules for who goes where.
 */
@NullMarked
package dev.penstock.schedules.simulate.churn;

import org.jspecify.annotations.NullMarked;
