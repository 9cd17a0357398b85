package dev.penstock.actors.rank;

import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.collective.CollectiveKind;
import dev.penstock.actors.collective.CollectiveLibrary;
import dev.penstock.actors.collective.GroupRole;
import dev.penstock.actors.collective.OpenGroup;
import dev.penstock.actors.collective.RankWaits;
import dev.penstock.actors.collective.SoloGroup;
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
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** The groups that a rank is a member of, for one epoch. The rank's thread only. */
final class RankGroups implements AutoCloseable {
    private final int rank;
    private final int epoch;
    private final List<Integer> homes;
    private final RankResources resources;
    private final RunPlan plan;
    private final Device device;
    private final DeviceScope scope;
    private final RankWaits waits;
    private final List<OpenGroup> opened = new ArrayList<>();
    private final List<DataPlaneGroup> overDataPlane = new ArrayList<>();
    private final StageGroups ofStages;

    /**
     * @param homes for each rank, the lowest rank that lives in the same process
     * @param scope where blocks that came from other processes lie
     */
    RankGroups(
            int rank,
            int epoch,
            List<Integer> homes,
            RankResources resources,
            Device device,
            DeviceScope scope,
            RankWaits waits) {
        this.rank = rank;
        this.epoch = epoch;
        this.homes = homes;
        this.resources = resources;
        this.plan = resources.plan();
        this.device = device;
        this.scope = scope;
        this.waits = waits;
        try {
            this.ofStages =
                    new StageGroups(
                            join(GroupRole.TENSOR, plan.grid().tensorGroup(rank)),
                            join(GroupRole.CONTEXT, plan.grid().contextGroup(rank)),
                            join(GroupRole.REPLICAS, plan.replicasOf(rank)),
                            IntStream.range(0, TensorMesh.AXES)
                                    .mapToObj(
                                            axis ->
                                                    join(
                                                            GroupRole.OF_AXES.get(axis),
                                                            plan.grid().meshGroup(rank, axis)))
                                    .toList());
        } catch (RuntimeException | Error e) {
            close(); // others in this process are not to wait for a rank without room
            throw e;
        }
    }

    private CollectiveGroup join(GroupRole role, List<Integer> members) {
        if (members.size() == 1) {
            return SoloGroup.GROUP;
        }
        OpenGroup group = meet(role, members);
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
                                waits);
            } catch (RuntimeException e) {
                group.close();
                throw e;
            }
        }
        opened.add(group);
        return group;
    }

    private OpenGroup meet(GroupRole role, List<Integer> members) {
        if (DataPlaneGroup.isFor(members, homes)) {
            var group =
                    new DataPlaneGroup(
                            role,
                            members,
                            members.indexOf(rank),
                            plan.ranks(),
                            scope,
                            device.kernels(),
                            plan.timeouts().stallLimit(),
                            plan.ringFromBytes(),
                            waits);
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
                        device.kernels(),
                        plan.timeouts().stallLimit(),
                        waits);
    }

    /**
     * Device memory for what comes from other processes, with ranks at these homes, and for what
     * members tell each other.
     *
     * @param staged whether links read other memory than the device's
     */
    static long slotBytes(
            int rank,
            RunPlan plan,
            List<Integer> homes,
            boolean staged,
            CollectiveLibrary library) {
        return Stream.concat(
                        Stream.of(
                                plan.grid().tensorGroup(rank),
                                plan.grid().contextGroup(rank),
                                plan.replicasOf(rank)),
                        IntStream.range(0, TensorMesh.AXES)
                                .mapToObj(axis -> plan.grid().meshGroup(rank, axis)))
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

    /** What this rank has sent to the members of its groups since the epoch began. */
    StepTraffic sent() {
        CollectiveGroup replicas = ofStages.replicas();
        long gathers = replicas.sentBytes(CollectiveKind.ALL_GATHER);
        long sums =
                replicas.sentBytes(CollectiveKind.REDUCE_SCATTER)
                        + replicas.sentBytes(CollectiveKind.ALL_REDUCE);
        boolean apart = plan.apart();
        return new StepTraffic(
                0,
                0,
                ofStages.context().sentBytes(),
                ofStages.tensor().sentBytes()
                        + ofStages.mesh().stream().mapToLong(CollectiveGroup::sentBytes).sum(),
                apart ? 0 : gathers,
                apart ? 0 : sums,
                0,
                0,
                apart ? gathers + sums : 0);
    }

    @Override
    public void close() {
        opened.forEach(OpenGroup::close);
    }
}
