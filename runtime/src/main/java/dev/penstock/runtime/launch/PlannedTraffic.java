package dev.penstock.runtime.launch;

import dev.penstock.actors.collective.CollectiveForm;
import dev.penstock.actors.collective.TensorMesh;
import dev.penstock.actors.collective.wire.DataPlaneGroup;
import dev.penstock.actors.mirror.MirrorLayout;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.Sharers;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.actors.spi.StepTraffic;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.stage.ActivationTraffic;
import dev.penstock.runtime.model.stage.MeshTraffic;
import dev.penstock.runtime.model.stage.ShardTraffic;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.simulate.ReplicaTraffic;
import java.util.List;
import java.util.function.IntUnaryOperator;
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
        RankProgram program = plan.program(StepKind.TRAIN, rank);
        List<Op> ops = program.ops();
        var activations =
                new ActivationTraffic(
                        model,
                        place,
                        ops,
                        ringFromBytes(plan.grid().tensorGroup(rank)),
                        plan.codecs());
        IntUnaryOperator receivers =
                stage ->
                        plan.grid()
                                .receivers(rank, plan.training().placement().rankOf(stage))
                                .size();
        List<Integer> replicas = plan.replicasOf(rank);
        var sharded =
                new ShardTraffic(
                        model,
                        place,
                        replicas.size(),
                        replicas.indexOf(rank),
                        ringFromBytes(replicas));
        var summed = ReplicaTraffic.of(program, sharded);
        return new StepTraffic(
                activations.activations(receivers),
                activations.activationGradients(receivers),
                activations.ring(),
                shards(rank, place, ops, activations),
                summed.gatherBytes(),
                summed.reductionBytes(),
                tiedGradients(rank, place),
                mirroredGradients(rank, sharded),
                sharded.outerGradients(plan.stagesOf(rank)));
    }

    private long shards(int rank, RankPlace place, List<Op> ops, ActivationTraffic line) {
        if (!model.grid().mesh().isThere()) {
            return line.shards();
        }
        List<Long> ringFrom =
                IntStream.range(0, TensorMesh.AXES)
                        .mapToObj(axis -> ringFromBytes(plan.grid().meshGroup(rank, axis)))
                        .toList();
        return new MeshTraffic(model, place, ops, ringFrom).shards();
    }

    private long ringFromBytes(List<Integer> members) {
        return DataPlaneGroup.isFor(members, meeting) ? plan.ringFromBytes() : CollectiveForm.NEVER;
    }

    private long mirroredGradients(int rank, ShardTraffic sharded) {
        if (MirrorLayout.atFirst(plan, homes).holderOf(rank) == MirrorLayout.NOBODY) {
            return 0;
        }
        long gradients = plan.stagesOf(rank).stream().mapToLong(sharded::heldGradients).sum();
        return gradients + PlannedMemory.kept(rank, plan, model).pending() * Float.BYTES;
    }

    /** Once to everyone who gets them, of every stage here whose sharer is on another rank. */
    private long tiedGradients(int rank, RankPlace place) {
        List<Integer> own = plan.stagesOf(rank);
        long sent = 0;
        for (List<Integer> group : plan.training().sharedGroups()) {
            for (int stage : group) {
                for (int other : group) {
                    if (plan.isPresent(rank) && own.contains(stage) && !own.contains(other)) {
                        sent += Sharers.of(plan, rank, stage, other).receivers().size();
                    }
                }
            }
        }
        return sent * model.sharedGradientElements(place) * Float.BYTES;
    }
}
