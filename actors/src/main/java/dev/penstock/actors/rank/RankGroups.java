package dev.penstock.actors.rank;

import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.collective.CollectiveKind;
import dev.penstock.actors.collective.CollectiveLibrary;
import dev.penstock.actors.collective.GroupRole;
import dev.penstock.actors.collective.OpenGroup;
import dev.penstock.actors.collective.RankWaits;
import dev.penstock.actors.collective.SoloGroup;
import dev.penstock.actors.collective.Strands;
import dev.penstock.actors.collective.TensorMesh;
import dev.penstock.actors.collective.library.LibraryGroup;
import dev.penstock.actors.collective.wire.DataPlaneGroup;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.Inbound;
import dev.penstock.actors.dataplane.Outbound;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StageGroups;
import dev.penstock.actors.spi.StepTraffic;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Kernels;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** The groups that a rank is a member of, for one epoch. The rank's thread only. */
final class RankGroups implements AutoCloseable {
    private final int rank;
    private final int epoch;
    private final List<Integer> homes;
    private final RankResources resources;
    private final RunPlan plan;
    private final Device device;
    private final DeviceScope scope;
    private final Supplier<RankWaits> waits;
    private final @Nullable Strands strands;
    private final List<OpenGroup> opened = new ArrayList<>();
    private final List<DataPlaneGroup> overDataPlane = new ArrayList<>();
    private final StageGroups ofStages;

    /**
     * @param homes for each rank, the lowest rank that lives in the same process
     * @param scope where blocks that came from other processes lie
     * @param beside whether a stage runs both ops of a pair at a time, if its device can
     * @param waits how a group waits
     */
    RankGroups(
            int rank,
            int epoch,
            List<Integer> homes,
            RankResources resources,
            Device device,
            DeviceScope scope,
            boolean beside,
            Supplier<RankWaits> waits) {
        this.rank = rank;
        this.epoch = epoch;
        this.homes = homes;
        this.resources = resources;
        this.plan = resources.plan();
        this.device = device;
        this.scope = scope;
        this.waits = waits;
        this.strands =
                beside && device.sumsBesideOps().isPresent()
                        ? new Strands(plan.nameOf(rank) + "/beside")
                        : null;
        try {
            CollectiveGroup context = join(GroupRole.CONTEXT, plan.grid().contextGroup(rank));
            CollectiveGroup replicas = join(GroupRole.REPLICAS, plan.replicasOf(rank));
            this.ofStages =
                    new StageGroups(
                            shards(GroupRole.TENSOR),
                            context,
                            replicas,
                            mesh(GroupRole.OF_AXES),
                            beside
                                    ? new StageGroups(
                                            shards(GroupRole.TENSOR_BESIDE),
                                            SoloGroup.GROUP,
                                            SoloGroup.GROUP,
                                            mesh(GroupRole.OF_AXES_BESIDE))
                                    : null);
        } catch (RuntimeException | Error e) {
            close(); // others in this process are not to wait for a rank without room
            throw e;
        }
    }

    private CollectiveGroup shards(GroupRole role) {
        return ofStrand(role, plan.grid().tensorGroup(rank));
    }

    private List<CollectiveGroup> mesh(List<GroupRole> roles) {
        return IntStream.range(0, TensorMesh.AXES)
                .mapToObj(axis -> ofStrand(roles.get(axis), plan.grid().meshGroup(rank, axis)))
                .toList();
    }

    private CollectiveGroup ofStrand(GroupRole role, List<Integer> members) {
        if (strands == null) {
            return join(role, members);
        }
        Kernels sums = device.sumsBesideOps().orElseThrow();
        return strands.group(join(role, members, sums, strands.waits(waits.get())));
    }

    private CollectiveGroup join(GroupRole role, List<Integer> members) {
        return join(role, members, device.kernels(), waits.get());
    }

    private CollectiveGroup join(
            GroupRole role, List<Integer> members, Kernels kernels, RankWaits wait) {
        if (members.size() == 1) {
            return SoloGroup.GROUP;
        }
        OpenGroup group = meet(role, members, kernels, wait);
        CollectiveLibrary library = resources.library();
        if (library != CollectiveLibrary.NEVER) {
            try {
                group =
                        new LibraryGroup(
                                group,
                                role,
                                members,
                                library,
                                device,
                                scope,
                                plan.timeouts().stallLimit(),
                                wait);
            } catch (RuntimeException e) {
                group.close();
                throw e;
            }
        }
        opened.add(group);
        return group;
    }

    private OpenGroup meet(GroupRole role, List<Integer> members, Kernels kernels, RankWaits wait) {
        if (DataPlaneGroup.isFor(members, homes)) {
            var group =
                    new DataPlaneGroup(
                            role,
                            members,
                            members.indexOf(rank),
                            plan.ranks(),
                            scope,
                            kernels,
                            plan.timeouts().stallLimit(),
                            plan.ringFromBytes(),
                            wait);
            overDataPlane.add(group);
            return group;
        }
        return resources
                .collectives()
                .join(
                        epoch,
                        role,
                        members,
                        members.indexOf(rank),
                        kernels,
                        plan.timeouts().stallLimit(),
                        wait);
    }

    /**
     * Device memory for what comes from other processes, with ranks at these homes, and for what
     * members tell each other.
     *
     * @param staged whether links read other memory than the device's
     * @param beside whether a stage runs both ops of a pair at a time
     */
    static long slotBytes(
            int rank,
            RunPlan plan,
            List<Integer> homes,
            boolean staged,
            CollectiveLibrary library,
            boolean beside) {
        List<List<Integer>> shards =
                Stream.concat(
                                Stream.of(plan.grid().tensorGroup(rank)),
                                IntStream.range(0, TensorMesh.AXES)
                                        .mapToObj(axis -> plan.grid().meshGroup(rank, axis)))
                        .toList();
        return Stream.of(
                        shards,
                        beside ? shards : List.<List<Integer>>of(),
                        List.of(plan.grid().contextGroup(rank), plan.replicasOf(rank)))
                .flatMap(List::stream)
                .filter(members -> members.size() > 1)
                .mapToLong(
                        members ->
                                (DataPlaneGroup.isFor(members, homes)
                                                ? DataPlaneGroup.slotBytes(members.size(), staged)
                                                : 0)
                                        + (library == CollectiveLibrary.NEVER
                                                ? 0
                                                : LibraryGroup.bytes(members.size())))
                .sum();
    }

    Stream<Inbound> inbound() {
        return overDataPlane.stream().flatMap(group -> group.inbound().stream());
    }

    Stream<Outbound> outbound() {
        return overDataPlane.stream().flatMap(group -> group.outbound().stream());
    }

    void bind(Endpoint endpoint) {
        overDataPlane.forEach(group -> group.bind(endpoint));
    }

    StageGroups ofStages() {
        return ofStages;
    }

    /** What runs both halves of a pair at a time; null if nobody does. */
    @Nullable Strands strands() {
        return strands;
    }

    /** What this rank has sent to the members of its groups since the epoch began. */
    StepTraffic sent() {
        CollectiveGroup replicas = ofStages.replicas();
        long gathers = replicas.sentBytes(CollectiveKind.ALL_GATHER);
        long sums =
                replicas.sentBytes(CollectiveKind.REDUCE_SCATTER)
                        + replicas.sentBytes(CollectiveKind.ALL_REDUCE);
        return new StepTraffic(
                0,
                0,
                ofStages.context().sentBytes(),
                sentToShards(ofStages),
                gathers,
                sums,
                0,
                0,
                0);
    }

    private static long sentToShards(@Nullable StageGroups groups) {
        return groups == null
                ? 0
                : groups.tensor().sentBytes()
                        + groups.mesh().stream().mapToLong(CollectiveGroup::sentBytes).sum()
                        + sentToShards(groups.beside());
    }

    @Override
    public void close() {
        if (strands != null) {
            strands.close();
        }
        opened.forEach(OpenGroup::close);
    }
}
