package dev.penstock.schedules.lower;

import java.util.Collection;
import java.util.List;
import java.util.Optional;

/**
 * What a run needs beside the computations.
 *
 * @param sharedGroups groups of stages that hold the same parameters, such as {@code [[0, 3]]} for
 *     a tied embedding over four stages; groups of one stage are ignored
 * @param gathers how sharded parameters come and go; empty where every rank keeps its own
 * @param reduction when replicas sum their gradients
 */
public record LoweringOptions(
        List<List<Integer>> sharedGroups,
        Optional<GatherSettings> gathers,
        GradientReduction reduction) {
    public LoweringOptions {
        sharedGroups = sharedGroups.stream().map(List::copyOf).toList();
    }

    /** One replica, nothing shared, nothing sharded. */
    public static LoweringOptions plain() {
        return new LoweringOptions(List.of(), Optional.empty(), GradientReduction.SHARED_ONLY);
    }

    /** The same with these groups. */
    public LoweringOptions withSharedGroups(Collection<? extends Collection<Integer>> groups) {
        return new LoweringOptions(
                groups.stream().<List<Integer>>map(List::copyOf).toList(), gathers, reduction);
    }

    /** The same with sharded parameters. */
    public LoweringOptions withGathers(GatherSettings settings) {
        return new LoweringOptions(sharedGroups, Optional.of(settings), reduction);
    }

    /** The same with replicas. */
    public LoweringOptions withReduction(GradientReduction when) {
        return new LoweringOptions(sharedGroups, gathers, when);
    }
}
