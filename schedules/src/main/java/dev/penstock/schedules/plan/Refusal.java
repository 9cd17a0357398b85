package dev.penstock.schedules.plan;

import dev.penstock.schedules.plan.work.PlanChoice;
import dev.penstock.schedules.plan.work.RankMemory;

/**
 * A choice that does not fit.
 *
 * @param memory of the rank that is missing most
 * @param device of that rank, for people
 * @param leastNanos no step of this choice is faster
 */
public record Refusal(PlanChoice choice, RankMemory memory, String device, long leastNanos) {}
