package dev.penstock.schedules.plan;

import dev.penstock.schedules.plan.work.PlanChoice;
import dev.penstock.schedules.plan.work.PlanRequest;
import dev.penstock.schedules.plan.work.RankMemory;
import java.util.Comparator;
import java.util.List;

/**
 * A plan that was proved by the judge and timed by the simulator.
 *
 * @param partition blocks of each stage
 * @param stepNanos a whole step
 * @param busyNanos computation of the busiest rank in a step
 * @param tailNanos the longest tail of a rank: reductions, optimizer
 * @param bubbleShare idle time of all ranks before their tails, over all time before them
 * @param memory entry r is what a device of rank r needs
 */
public record Plan(
        PlanChoice choice,
        List<Integer> partition,
        long stepNanos,
        long busyNanos,
        long tailNanos,
        double bubbleShare,
        List<RankMemory> memory) {
    /** Fastest first; among equals what needs less memory, then what is simpler. */
    static final Comparator<Plan> BEST_FIRST =
            Comparator.comparingLong(Plan::stepNanos)
                    .thenComparingLong(Plan::peakBytes)
                    .thenComparing(Plan::choice, ChoiceOrder.SIMPLER_FIRST);

    /** What needs less memory first; among equals what is simpler, then what is faster. */
    static final Comparator<Plan> LEANEST_FIRST =
            Comparator.comparingLong(Plan::peakBytes)
                    .thenComparing(Plan::choice, ChoiceOrder.SIMPLER_FIRST)
                    .thenComparing(BEST_FIRST);

    public Plan {
        partition = List.copyOf(partition);
        memory = List.copyOf(memory);
    }

    /** What the device that needs most needs. */
    public long peakBytes() {
        return memory.stream().mapToLong(RankMemory::bytes).max().orElse(0);
    }

    /** Tokens of a step over its time. */
    public double tokensPerSecond(PlanRequest request) {
        return 1e9 * request.batch() * request.model().sequence() / stepNanos;
    }
}
