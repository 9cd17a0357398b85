package dev.penstock.schedules.plan.work;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.validate.MemoryLimit;
import dev.penstock.schedules.validate.MemoryModel;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/**
 * What an order of a model holds in bytes, for the judge: the same sizes as the planner's. A unit
 * that is recomputed keeps the input of its stage alone (and, where sequences are cut, the keys and
 * values that later slices need), and everything from its recompute on.
 */
public final class OrderMemory {
    private static final Link ANY = new Link(0, 1e15);

    private OrderMemory() {}

    /**
     * One device per rank and replica.
     *
     * @param order lowered or not; its slice lengths may be proportions
     * @param partition blocks of each stage
     * @param sequences of a micro-batch
     * @param replicas among which the parameters are divided if the order gathers them
     * @param bytesOfRank entry r is what a device of rank r has
     */
    public static MemoryLimit limit(
            ModelShape model,
            TrainingBytes bytes,
            Schedule order,
            List<Integer> partition,
            int sequences,
            int replicas,
            List<Long> bytesOfRank) {
        PipelineShape shape = order.shape();
        PipelineWork work = work(model, bytes, order, sequences, replicas, bytesOfRank);
        boolean divided =
                order.programs().stream()
                        .flatMap(program -> program.ops().stream())
                        .anyMatch(op -> op instanceof Op.ParameterOp);
        ZeroStage zero = divided ? ZeroStage.PARAMETERS : ZeroStage.NONE;
        var throughout = new ArrayList<Long>();
        for (int rank = 0; rank < shape.ranks(); rank++) {
            // what is gathered comes and goes with the order's ops
            long working =
                    RankMemory.of(work, partition, order.placement(), ZeroStage.NONE, rank, 0)
                            .working();
            long state = RankMemory.of(work, partition, order.placement(), zero, rank, 0).state();
            throughout.add(state + working);
        }
        return new MemoryLimit(model(work, partition, order.placement()), bytesOfRank, throughout);
    }

    /** Every block of a stage as a layer of its gathers; embedding and head belong to the ends. */
    private static MemoryModel model(
            PipelineWork work, List<Integer> partition, Placement placement) {
        int last = partition.size() - 1;
        var activations = new ArrayList<List<Long>>();
        var inputs = new ArrayList<List<Long>>();
        var gathered = new ArrayList<List<Long>>();
        for (int s = 0; s <= last; s++) {
            int stage = s;
            int rank = placement.rankOf(stage);
            int blocks = partition.get(stage);
            activations.add(
                    IntStream.range(0, work.slices())
                            .mapToObj(slice -> work.keptBytes(rank, slice, blocks, stage == last))
                            .toList());
            inputs.add(
                    IntStream.range(0, work.slices())
                            .mapToObj(slice -> inputBytes(work, slice, blocks))
                            .toList());
            gathered.add(
                    IntStream.range(0, Math.max(1, blocks))
                            .mapToObj(block -> layerBytes(work, rank, block, blocks, stage, last))
                            .toList());
        }
        return new MemoryModel(activations, inputs, gathered);
    }

    private static long inputBytes(PipelineWork work, int slice, int blocks) {
        TrainingBytes bytes = work.request().bytes();
        ModelShape model = work.request().model();
        long tokens = work.tokens(slice);
        long input = bytes.activation() * tokens * model.width();
        return input
                + (work.slices() > 1 ? blocks * UnitBytes.keysAndValues(model, bytes, tokens) : 0);
    }

    private static long layerBytes(
            PipelineWork work, int rank, int block, int blocks, int stage, int lastStage) {
        boolean first = stage == 0 && block == 0;
        boolean last = stage == lastStage && block == Math.max(0, blocks - 1);
        return work.request().bytes().parameter()
                * work.stageParameters(rank, Math.min(1, blocks), first, last);
    }

    private static PipelineWork work(
            ModelShape model,
            TrainingBytes bytes,
            Schedule order,
            int sequences,
            int replicas,
            List<Long> bytesOfRank) {
        PipelineShape shape = order.shape();
        List<NodeGroup> devices =
                bytesOfRank.stream()
                        .map(limit -> new NodeGroup("rank", replicas, 1, device(limit), ANY))
                        .toList();
        var request =
                new PlanRequest(
                        model,
                        bytes,
                        new Hardware("devices", devices, ANY),
                        shape.microBatches() * sequences * replicas);
        return PipelineWork.of(
                request,
                LayoutHardware.of(request.cluster(), new Layout(shape.ranks(), 1, replicas)),
                sequences,
                model.tokens(shape.sliceLengths()),
                false);
    }

    private static DeviceSpec device(long bytes) {
        return new DeviceSpec(bytes, 1e15, 1, 1e15);
    }
}
