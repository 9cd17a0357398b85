package dev.penstock.schedules.lower;

import dev.penstock.schedules.ir.Schedule;
import java.util.Collection;
import java.util.List;

/**
 * The passes in their order: from the computations of a generator or a hand-written file to what
 * the ranks run. A pass adds only what is missing, so a schedule that has its transfers keeps them.
 *
 * <p>All entries throw {@link IllegalArgumentException} for an op of a unit that does not exist;
 * everything else that may be wrong with an order passes through for the judge to name.
 */
public final class Lowering {
    private Lowering() {}

    /** Lowers a training schedule whose stages share no parameters. */
    public static Schedule lower(Schedule schedule) {
        return lower(schedule, List.of());
    }

    /**
     * Lowers a training schedule.
     *
     * @param sharedGroups groups of stages that hold the same parameters, such as {@code [[0, 3]]}
     *     for a tied embedding over four stages; groups of one stage are ignored
     */
    public static Schedule lower(
            Schedule schedule, Collection<? extends Collection<Integer>> sharedGroups) {
        return InsertTransfers.into(InsertReductions.into(schedule, sharedGroups));
    }

    /** The forwards of a training schedule, lowered: what an evaluation runs. */
    public static Schedule lowerForwardOnly(Schedule schedule) {
        return InsertTransfers.into(ForwardOnly.of(schedule));
    }
}
