package dev.penstock.schedules.lower;

import dev.penstock.schedules.ir.Schedule;
import java.util.Collection;
import java.util.List;

/**
 * The passes in their order: from the computations of a generator or a hand-written file to what
 * the ranks run. First backwards in one op, two or none and recomputes, then activations to the
 * host and back, gathers and releases, then reductions, then sends and receives. A pass adds only
 * what is missing, so a schedule that has such ops keeps them.
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
     * Lowers a training schedule of one replica.
     *
     * @param sharedGroups groups of stages that hold the same parameters, such as {@code [[0, 3]]}
     *     for a tied embedding over four stages; groups of one stage are ignored
     */
    public static Schedule lower(
            Schedule schedule, Collection<? extends Collection<Integer>> sharedGroups) {
        return lower(schedule, LoweringOptions.plain().withSharedGroups(sharedGroups));
    }

    /** Lowers a training schedule. */
    public static Schedule lower(Schedule schedule, LoweringOptions options) {
        Schedule reduced =
                InsertReductions.into(
                        gathered(offloaded(computations(schedule, options), options), options),
                        options.sharedGroups(),
                        options.reduction(),
                        options.frozen());
        return withTransfers(reduced, options);
    }

    /** The forwards of a training schedule, lowered: what an evaluation runs. */
    public static Schedule lowerForwardOnly(Schedule schedule) {
        return lowerForwardOnly(schedule, LoweringOptions.plain());
    }

    /** The same where parameters may be sharded; an evaluation reduces nothing. */
    public static Schedule lowerForwardOnly(Schedule schedule, LoweringOptions options) {
        return withTransfers(gathered(ForwardOnly.of(schedule), options), options);
    }

    /**
     * The passes that change computations alone: an order of nothing else stays one, and its
     * tensors travel by themselves.
     */
    public static Schedule computations(Schedule schedule, LoweringOptions options) {
        Schedule parted =
                switch (options.backward()) {
                    case AS_WRITTEN -> schedule;
                    case SPLIT -> SplitBackward.in(schedule);
                    case MERGED -> MergeBackward.in(schedule);
                };
        Schedule needed = OmitFrozen.from(parted, options.frozen());
        return options.recompute() ? InsertRecompute.into(needed) : needed;
    }

    private static Schedule offloaded(Schedule schedule, LoweringOptions options) {
        return options.offload()
                .map(settings -> InsertOffloads.into(schedule, settings))
                .orElse(schedule);
    }

    private static Schedule gathered(Schedule schedule, LoweringOptions options) {
        return options.gathers()
                .map(settings -> InsertParameterGathers.into(schedule, settings))
                .orElse(schedule);
    }

    private static Schedule withTransfers(Schedule schedule, LoweringOptions options) {
        return options.capacity().isPresent()
                ? InsertTransfers.into(schedule, options.capacity().getAsInt())
                : InsertTransfers.into(schedule);
    }
}
