package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.OpPlace;
import dev.penstock.schedules.ir.Schedule;

import java.util.List;

/**
 * What makes a step as long as it is: a chain of ops and ways without a gap from the start of the
 * step to its end. Nothing beside it can shorten the step; where several chains are as long, it is
 * the one that stays on a rank as long as it can.
 *
 * @param makespanNanos the length of the chain
 * @param steps first step first; each begins when the one before ends
 */
public record CriticalPath(long makespanNanos, List<Step> steps) {
    public CriticalPath {
        steps = List.copyOf(steps);
    }

    /** What a step of the chain is. */
    public enum Activity {
        /** The op keeps its rank. */
        RUNS,
        /** The tensor that the op passes on keeps its link. */
        ON_LINK,
        /** The tensor that the op passes on is under way beyond its link. */
        UNDER_WAY,
        /** The op gathers, reduces or moves activations beside the computations of its rank. */
        BACKGROUND
    }

    /** Why a step begins only when the one before it ends. */
    public enum Cause {
        /** It is the first. */
        BEGINNING,
        /** The rank, or the link's sender, is busy with the op until then. */
        RANK,
        /** The tensor arrives then. */
        TENSOR,
        /** The receiver makes room then. */
        CREDIT,
        /** The last member of the reduction comes then. */
        MEMBERS,
        /** The parameters are there then. */
        PARAMETERS,
        /** The activations are back then, or have left the room that the op takes. */
        ACTIVATIONS,
        /** The tensor itself, or one before it, leaves the link then. */
        LINK,
        /** An earlier one of the rank's gathers and reductions, or of its moves, ends then. */
        BACKGROUND
    }

    /**
     * A part of the chain.
     *
     * @param place the op
     * @param cause why it begins no earlier
     */
    public record Step(
            OpPlace place, Activity activity, long fromNanos, long toNanos, Cause cause) {
        public long nanos() {
            return toNanos - fromNanos;
        }
    }

    /**
     * The critical path of a simulation with these costs and channels.
     *
     * @param schedule a valid one
     * @throws IllegalArgumentException if it gets stuck
     */
    public static CriticalPath of(Schedule schedule, CostModel costs, InFlight inFlight) {
        return new CriticalWalk(schedule, costs, inFlight).criticalPath();
    }

    /** The time that the chain spends with an activity. */
    public long nanos(Activity activity) {
        return steps.stream()
                .filter(step -> step.activity() == activity)
                .mapToLong(Step::nanos)
                .sum();
    }
}
