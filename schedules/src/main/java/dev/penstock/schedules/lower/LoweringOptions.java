package dev.penstock.schedules.lower;

import dev.penstock.schedules.ir.FrozenStages;

import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;

/**
 * What a run needs beside the computations, and how it runs these.
 *
 * @param backward in how many ops backwards run
 * @param recompute whether every unit keeps its input alone and runs its forward again
 * @param offload which activations go to the host in between; empty where all stay
 * @param frozen stages of which nothing is trained
 * @param sharedGroups groups of stages that hold the same parameters, such as {@code [[0, 3]]} for
 *     a tied embedding over four stages; groups of one stage are ignored
 * @param gathers how sharded parameters come and go; empty where every rank keeps its own
 * @param reduction when replicas sum their gradients
 * @param capacity most tensors that a channel can hold; empty for as many as the order needs, so
 *     that transfers cost no time
 */
public record LoweringOptions(
        BackwardParts backward,
        boolean recompute,
        Optional<OffloadSettings> offload,
        FrozenStages frozen,
        List<List<Integer>> sharedGroups,
        Optional<GatherSettings> gathers,
        GradientReduction reduction,
        OptionalInt capacity) {
    public LoweringOptions {
        sharedGroups = sharedGroups.stream().map(List::copyOf).toList();
        if (capacity.isPresent() && capacity.getAsInt() < 1) {
            throw new IllegalArgumentException(
                    "a channel needs a capacity of at least 1, got " + capacity.getAsInt());
        }
    }

    /**
     * Computations as they are, one replica, nothing shared, nothing sharded, as many buffers as it
     * takes.
     */
    public static LoweringOptions plain() {
        return new LoweringOptions(
                BackwardParts.AS_WRITTEN,
                false,
                Optional.empty(),
                FrozenStages.NONE,
                List.of(),
                Optional.empty(),
                GradientReduction.SHARED_ONLY,
                OptionalInt.empty());
    }

    /** The same with backwards in so many ops. */
    public LoweringOptions withBackward(BackwardParts parts) {
        return new LoweringOptions(
                parts, recompute, offload, frozen, sharedGroups, gathers, reduction, capacity);
    }

    /** The same with all activations computed a second time. */
    public LoweringOptions withRecompute() {
        return new LoweringOptions(
                backward, true, offload, frozen, sharedGroups, gathers, reduction, capacity);
    }

    /** The same where activations go to the host and come back. */
    public LoweringOptions withOffload(OffloadSettings settings) {
        return new LoweringOptions(
                backward,
                recompute,
                Optional.of(settings),
                frozen,
                sharedGroups,
                gathers,
                reduction,
                capacity);
    }

    /** The same where nothing is trained of these stages. */
    public LoweringOptions withFrozen(FrozenStages stages) {
        return new LoweringOptions(
                backward, recompute, offload, stages, sharedGroups, gathers, reduction, capacity);
    }

    /** The same with these groups. */
    public LoweringOptions withSharedGroups(Collection<? extends Collection<Integer>> groups) {
        return new LoweringOptions(
                backward,
                recompute,
                offload,
                frozen,
                groups.stream().<List<Integer>>map(List::copyOf).toList(),
                gathers,
                reduction,
                capacity);
    }

    /** The same with sharded parameters. */
    public LoweringOptions withGathers(GatherSettings settings) {
        return new LoweringOptions(
                backward,
                recompute,
                offload,
                frozen,
                sharedGroups,
                Optional.of(settings),
                reduction,
                capacity);
    }

    /** The same with replicas. */
    public LoweringOptions withReduction(GradientReduction when) {
        return new LoweringOptions(
                backward, recompute, offload, frozen, sharedGroups, gathers, when, capacity);
    }

    /** The same for channels of this capacity, where a tensor may have to be taken early. */
    public LoweringOptions withCapacity(int tensors) {
        return new LoweringOptions(
                backward,
                recompute,
                offload,
                frozen,
                sharedGroups,
                gathers,
                reduction,
                OptionalInt.of(tensors));
    }
}
