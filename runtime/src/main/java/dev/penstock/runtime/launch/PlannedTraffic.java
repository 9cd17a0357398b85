package dev.penstock.runtime.launch;

import dev.penstock.actors.collective.CollectiveForm;
import dev.penstock.actors.collective.wire.DataPlaneGroup;
import dev.penstock.actors.mirror.MirrorLayout;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StepTraffic;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.stage.ActivationTraffic;
import dev.penstock.runtime.model.stage.ShardTraffic;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.simulate.ReplicaTraffic;
import java.util.List;
import java.util.stream.IntStream;

/**
 * What the ranks of a run send to each other in a training step, to the byte: counted over the ops
 * of their program with the sizes of this model. Of outer gradients, which travel in some steps
 * alone, what the largest fragment takes in all of its steps. Nothing is allocated.
 *
 * @param homes by rank, the lowest rank that lives in the same process
 * @param meeting by rank, the lowest rank that it meets in shared memory: groups that all do meet
 *     there, others may send round a ring
 */
public record PlannedTraffic(
        RunPlan plan, GptSettings model, List<Integer> homes, List<Integer> meeting) {
    public PlannedTraffic {
        homes = List.copyOf(homes);
        meeting = List.copyOf(meeting);
    }

    /** Of a run on one host in which nobody dies. */
    static PlannedTraffic of(RunConfig config, ProvedSchedule schedule, GptSettings model) {
        List<Integer> homes = ConfiguredPlan.homes(config);
        return new PlannedTraffic(
                ConfiguredPlan.forMemory(config, schedule, false),
                model,
                homes,
                ConfiguredPlan.meeting(config, homes));
    }

    /** Entry r is rank r's. */
    public List<StepTraffic> ofAllRanks() {
        return IntStream.range(0, plan.ranks()).mapToObj(this::of).toList();
    }

    private StepTraffic of(int rank) {
        RankPlace place = plan.grid().placeOf(rank);
        List<Op> ops = plan.training().program(place.pipeline()).ops();
        var activations =
                new ActivationTraffic(
                        model,
                        place,
                        ops,
                        ringFromBytes(plan.grid().tensorGroup(rank)),
                        plan.codecs());
        var sharded = new ShardTraffic(model, place, ringFromBytes(plan.grid().replicaGroup(rank)));
        var replicas = ReplicaTraffic.of(plan.training().program(place.pipeline()), sharded);
        return new StepTraffic(
                activations.activations(),
                activations.activationGradients(),
                activations.ring(),
                activations.shards(),
                replicas.gatherBytes(),
                replicas.reductionBytes(),
                tiedGradients(place),
                mirroredGradients(rank, sharded),
                sharded.outerGradients(plan.stagesOf(rank)));
    }

    private long ringFromBytes(List<Integer> members) {
        return DataPlaneGroup.isFor(members, meeting) ? plan.ringFromBytes() : CollectiveForm.NEVER;
    }

    private long mirroredGradients(int rank, ShardTraffic sharded) {
        return MirrorLayout.atFirst(plan, homes).holderOf(rank) == MirrorLayout.NOBODY
                ? 0
                : plan.stagesOf(rank).stream().mapToLong(sharded::heldGradients).sum();
    }

    /** Once for every stage here whose sharer is on another rank. */
    private long tiedGradients(RankPlace place) {
        Placement placement = plan.training().placement();
        int here = place.pipeline();
        long sent =
                plan.training().sharedGroups().stream()
                        .filter(group -> group.stream().anyMatch(s -> placement.rankOf(s) != here))
                        .flatMap(List::stream)
                        .filter(stage -> placement.rankOf(stage) == here)
                        .count();
        return sent * model.sharedGradientElements(place) * Float.BYTES;
    }
}
