package dev.penstock.actors.shard;

import dev.penstock.actors.collective.Alone;
import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.collective.CollectiveRegistry;
import dev.penstock.actors.collective.GroupRole;
import dev.penstock.actors.collective.OpenGroup;
import dev.penstock.actors.collective.RankWaits;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StageGroups;
import dev.penstock.cuda.device.Kernels;
import java.util.ArrayList;
import java.util.List;

/** The groups that a rank is a member of, for one epoch. The rank's thread only. */
final class RankGroups implements AutoCloseable {
    private final int rank;
    private final int epoch;
    private final RunPlan plan;
    private final List<Integer> homes;
    private final Kernels kernels;
    private final CollectiveRegistry registry;
    private final RankWaits waits;
    private final List<OpenGroup> open = new ArrayList<>();
    private final StageGroups ofStages;

    /**
     * @param homes by rank, the lowest rank that lives on the same node
     */
    RankGroups(
            int rank,
            int epoch,
            RunPlan plan,
            List<Integer> homes,
            Kernels kernels,
            CollectiveRegistry registry,
            RankWaits waits) {
        this.rank = rank;
        this.epoch = epoch;
        this.plan = plan;
        this.homes = homes;
        this.kernels = kernels;
        this.registry = registry;
        this.waits = waits;
        this.ofStages =
                new StageGroups(
                        join(GroupRole.TENSOR, plan.grid().tensorGroup(rank)),
                        join(GroupRole.CONTEXT, plan.grid().contextGroup(rank)),
                        join(GroupRole.REPLICAS, plan.grid().replicaGroup(rank)));
    }

    private CollectiveGroup join(GroupRole role, List<Integer> members) {
        if (members.size() == 1) {
            return Alone.GROUP;
        }
        if (members.stream().map(homes::get).distinct().count() > 1) {
            throw new IllegalStateException(
                    "ranks %s sum and gather across processes, which is not possible yet"
                            .formatted(members));
        }
        OpenGroup group =
                registry.join(
                        epoch,
                        role,
                        members,
                        members.indexOf(rank),
                        kernels,
                        plan.timeouts().stallLimit(),
                        waits);
        open.add(group);
        return group;
    }

    StageGroups ofStages() {
        return ofStages;
    }

    @Override
    public void close() {
        open.forEach(OpenGroup::close);
    }
}
