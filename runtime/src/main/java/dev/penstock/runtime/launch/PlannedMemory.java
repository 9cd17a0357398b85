package dev.penstock.runtime.launch;

import dev.penstock.actors.collective.CollectiveLibrary;
import dev.penstock.actors.mirror.MirrorLayout;
import dev.penstock.actors.mirror.MirrorMemory;
import dev.penstock.actors.rank.BoundaryMemory;
import dev.penstock.actors.spi.MemoryUse;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.launch.devices.KernelMemory;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.StageMemory;
import dev.penstock.runtime.model.shape.ZeroSettings;
import dev.penstock.runtime.model.stage.GptStageFactory;
import dev.penstock.runtime.report.MemoryPlan;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.ToLongFunction;
import java.util.stream.IntStream;

/**
 * Device memory that the ranks of a run hold: stages, boundary tensors, blocks of collectives,
 * mirrors with the blocks in which gradients travel to them, and what kernels hold for themselves.
 * Nothing is allocated.
 *
 * @param plan of which only programs, numbers in flight and mirrors matter
 * @param keepsSent whether sent tensors are kept until they are verified
 * @param staged whether links read other memory than the devices'
 * @param library whether devices sum and gather by themselves
 * @param homes by rank, the lowest rank that lives in the same process
 * @param meeting by rank, the lowest rank that it meets in shared memory: groups that all do need
 *     no room to meet
 */
record PlannedMemory(
        RunPlan plan,
        GptSettings model,
        GptStageFactory stages,
        KernelMemory kernels,
        boolean keepsSent,
        boolean staged,
        CollectiveLibrary library,
        List<Integer> homes,
        List<Integer> meeting) {

    /**
     * Of a run's order.
     *
     * @param settings of the model, of which sizes matter
     * @param evaluateOnly whether nothing is trained
     */
    static PlannedMemory of(
            RunConfig config, GptSettings settings, ProvedSchedule proved, boolean evaluateOnly) {
        var ofOrder =
                new GptStageFactory(
                                settings,
                                proved.budgets(),
                                (_, _, _, _) -> {},
                                ParameterSource.none())
                        .following(proved.passes());
        GptStageFactory stages = config.pairsAtOnce() ? ofOrder.withPairsAtOnce() : ofOrder;
        boolean keepsSent =
                ConfiguredDataPlane.keepsSentTensors(
                        config.dataPlane(), ConfiguredFaults.harmFrames(config));
        RunPlan plan = ConfiguredPlan.forMemory(config, proved, evaluateOnly);
        List<Integer> homes = ConfiguredPlan.homes(config);
        return new PlannedMemory(
                plan,
                settings,
                stages,
                KernelMemory.of(config, plan, stages),
                keepsSent,
                config.device().kind().isCuda(),
                config.library(),
                homes,
                ConfiguredPlan.meeting(config, homes));
    }

    /** As the run begins; entry r is rank r's. */
    List<MemoryPlan> ofAllRanks() {
        MirrorLayout layout = MirrorLayout.atFirst(plan, homes);
        return IntStream.range(0, plan.ranks())
                .mapToObj(rank -> plan.isPresent(rank) ? of(rank, layout) : MemoryPlan.NOTHING)
                .toList();
    }

    private MemoryPlan of(int rank, MirrorLayout layout) {
        RankPlace place = plan.grid().placeOf(rank);
        List<Integer> own = plan.stagesOf(rank);
        long parameters = own.stream().mapToLong(stage -> stages.parameters(stage, place)).sum();
        long trained = own.stream().mapToLong(stage -> stages.trained(stage, place)).sum();
        long rounded = own.stream().mapToLong(stage -> stages.rounded(stage, place)).sum();
        long integers = own.stream().mapToLong(stage -> stages.integers(stage, place)).sum();
        long coded = own.stream().mapToLong(stage -> stages.coded(stage, place)).sum();
        StageMemory memory = stages.predictedMemory(own, place);
        List<MemoryUse> uses = uses(rank, layout, layout.heldBy(rank));
        uses.add(new MemoryUse(MemoryUse.HOST_ACTIVATIONS, memory.onHost()));
        uses.add(new MemoryUse(MemoryUse.ON_DISK, memory.offloaded()));
        return new MemoryPlan(
                planned(stages.formula(parameters, trained, rounded, integers, coded)), uses);
    }

    /** What is on disk is planned there, and not on the device. */
    private List<MemoryUse> planned(List<MemoryUse> formula) {
        Set<String> onDisk = onDisk();
        List<MemoryUse> planned =
                new ArrayList<>(
                        formula.stream().filter(use -> !onDisk.contains(use.use())).toList());
        long bytes =
                formula.stream()
                        .filter(use -> onDisk.contains(use.use()))
                        .mapToLong(MemoryUse::peakBytes)
                        .sum();
        if (bytes > 0) {
            planned.add(new MemoryUse(MemoryUse.ON_DISK, bytes));
        }
        return planned;
    }

    private Set<String> onDisk() {
        ZeroSettings zero = model.zero();
        if (zero.swap().isPresent()) {
            return Set.of(MemoryUse.PARAMETERS, MemoryUse.GRADIENTS, MemoryUse.OPTIMIZER);
        }
        if (zero.offload().isEmpty()) {
            return Set.of();
        }
        return zero.stage() >= 3
                ? Set.of(MemoryUse.PARAMETERS, MemoryUse.OPTIMIZER)
                : Set.of(MemoryUse.OPTIMIZER);
    }

    /**
     * Most bytes of a rank after the death of any one process, whose rank then lives beside its
     * mirror's holder. Mirrors move such that no second death takes a rank with its mirror, and
     * those that a rank gives up stay until the next pass.
     *
     * <pre>
     *   of ranks 0 1 2 3, with mirrors at 1 2 3 0, the second dies and lives again beside rank 2:
     *   mirrors are at 1 3 3 0, so rank 3 holds two
     * </pre>
     */
    long afterADeath(int rank) {
        if (!plan.isPresent(rank)) {
            return 0;
        }
        MirrorLayout before = MirrorLayout.atFirst(plan, homes);
        long most = bytes(rank, before, before.heldBy(rank));
        for (int dead = 0; dead < plan.ranks() && plan.mirrors(); dead++) {
            List<Integer> places = new ArrayList<>(homes);
            places.set(dead, homes.get(refuge(before, dead)));
            MirrorLayout after = MirrorLayout.across(plan, places);
            Set<Integer> held = new TreeSet<>(after.heldBy(rank));
            if (rank != dead) {
                held.addAll(before.heldBy(rank));
            }
            most = Math.max(most, bytes(rank, after, held));
        }
        return most;
    }

    /** The rank in whose process a dead one lives again; itself if nobody has its state. */
    private int refuge(MirrorLayout layout, int dead) {
        return layout.holderOf(dead) != MirrorLayout.NOBODY
                ? layout.holderOf(dead)
                : plan.copiesOf(dead).stream()
                        .filter(copy -> !homes.get(copy).equals(homes.get(dead)))
                        .findFirst()
                        .orElse(dead);
    }

    private long bytes(int rank, MirrorLayout layout, Collection<Integer> mirrored) {
        return uses(rank, layout, mirrored).stream().mapToLong(MemoryUse::peakBytes).sum();
    }

    private List<MemoryUse> uses(int rank, MirrorLayout layout, Collection<Integer> mirrored) {
        RankPlace place = plan.grid().placeOf(rank);
        List<MemoryUse> uses =
                new ArrayList<>(stages.predictedMemory(plan.stagesOf(rank), place).uses());
        long buffers =
                BoundaryMemory.bytes(
                        rank,
                        plan,
                        model.boundaryRows(),
                        model.boundaryColumns(),
                        model.boundaryRowsOfSequence(),
                        model.boundaryRowsOfStep(),
                        model.sharedGradientElements(place),
                        keepsSent,
                        staged);
        long mirrors =
                MirrorMemory.blockBytes(
                        rank,
                        layout,
                        other ->
                                mirrorBytes(other, StageMemory::gradients) / Float.BYTES
                                        + kept(other).pending());
        for (int other : mirrored) {
            mirrors += mirrorBytes(other, StageMemory::total) + kept(other).bytes();
        }
        uses.add(new MemoryUse(MemoryUse.BUFFERS, buffers));
        uses.add(
                new MemoryUse(
                        MemoryUse.COLLECTIVES,
                        BoundaryMemory.collectiveBytes(
                                rank,
                                plan,
                                meeting,
                                staged,
                                library,
                                stages.runsPairsAtOnce(place))));
        uses.add(new MemoryUse(MemoryUse.MIRRORS, mirrors));
        uses.add(new MemoryUse(MemoryUse.KERNELS, kernels.ofRank(rank)));
        return uses;
    }

    private BoundaryMemory.Kept kept(int rank) {
        return kept(rank, plan, model);
    }

    /** What a rank's ends of links keep from step to step. */
    static BoundaryMemory.Kept kept(int rank, RunPlan plan, GptSettings model) {
        return BoundaryMemory.kept(
                rank,
                plan,
                model.shape().width(),
                model.boundaryRowsOfSequence(),
                model.boundaryRowsOfStep());
    }

    private long mirrorBytes(int rank, ToLongFunction<StageMemory> use) {
        RankPlace place = plan.grid().placeOf(rank);
        return plan.stagesOf(rank).stream()
                .map(stage -> stages.predictedMirrorMemory(stage, place))
                .mapToLong(use)
                .sum();
    }
}
