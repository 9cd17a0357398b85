package dev.penstock.schedules.plan;

import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.Traffic;
import java.util.List;

/**
 * Costs that follow from a hardware description: FLOPs at the rate that the devices reach, memory
 * and links at their bandwidths, tensor-parallel all-reduces and ZeRO's gathers inside the ops. The
 * reduction of a stage's gradients runs beside the computations. Where a plan recomputes, block
 * after block, that is part of the backward, and the op that stands for it takes no time of its
 * own.
 */
public final class HardwareCosts implements CostModel, Traffic.TensorBytes {
    private final PipelineWork work;
    private final Placement placement;
    private final StageTimes times;

    /** By stage. */
    private final long[] reductions;

    /** By slice: bytes on each shard's way to the next stage. */
    private final long[] hopBytes;

    HardwareCosts(PipelineWork work, Placement placement, StageTimes times, long[] reductions) {
        this.work = work;
        this.placement = placement;
        this.times = times;
        this.reductions = reductions;
        this.hopBytes = new long[work.slices()];
        for (int slice = 0; slice < hopBytes.length; slice++) {
            hopBytes[slice] =
                    UnitBytes.hop(
                            work.request().model(),
                            work.request().bytes(),
                            work.layout().tensor(),
                            work.tokens(slice));
        }
    }

    /**
     * The costs of a choice.
     *
     * @param partition blocks of each stage
     * @param placement of the choice's schedule
     */
    public static HardwareCosts of(
            PlanRequest request, PlanChoice choice, List<Integer> partition, Placement placement) {
        int sequences = request.batch() / choice.layout().data() / choice.microBatches();
        var work =
                PipelineWork.of(
                        request,
                        LayoutHardware.of(request.cluster(), choice.layout()),
                        sequences,
                        choice.sliceLengths(),
                        choice.recompute());
        var times = new StageTimes(work, partition, placement, choice.zero());
        return new HardwareCosts(
                work,
                placement,
                times,
                StepTail.reductions(work, partition, placement, choice.zero()));
    }

    @Override
    public long nanos(int rank, int position, Op op) {
        return switch (op) {
            case Op.Forward(WorkUnit u) -> times.forward(u.stage(), u.slice());
            case Op.Backward(WorkUnit u) -> times.backward(u.stage(), u.slice());
            case Op.BackwardInput(WorkUnit u) -> times.backwardInput(u.stage(), u.slice());
            case Op.BackwardWeight(WorkUnit u) -> times.backwardWeight(u.stage(), u.slice());
            case Op.Recompute(WorkUnit u) ->
                    work.recompute() ? 0 : times.forward(u.stage(), u.slice());
            case Op.Overlapped(Op.Forward f, Op.InputGradient b) ->
                    nanos(rank, position, f) + nanos(rank, position, b);
            case Op.Transfer _, Op.ParameterOp _, Op.ReduceGradients _ -> 0;
        };
    }

    @Override
    public long backgroundNanos(int rank, Op op) {
        return op instanceof Op.ReduceGradients(int stage) ? reductions[stage] : 0;
    }

    @Override
    public long latencyNanos(Channel channel) {
        return linkOf(channel.fromStage(), channel.toStage()).latencyNanos();
    }

    @Override
    public long occupancyNanos(Channel channel, WorkUnit unit) {
        return occupancy(linkOf(channel.fromStage(), channel.toStage()), unit.slice());
    }

    @Override
    public long bytes(Channel channel, WorkUnit unit) {
        return hopBytes[unit.slice()];
    }

    private long occupancy(Link link, int slice) {
        return Math.round(link.nanos((double) hopBytes[slice]));
    }

    /** How long a slice is under way between a stage and the next; 0 on the same rank. */
    long hopNanos(int stage, int slice) {
        if (!placement.crossesAfter(stage)) {
            return 0;
        }
        Link link = linkOf(stage, stage + 1);
        return link.latencyNanos() + occupancy(link, slice);
    }

    private Link linkOf(int fromStage, int toStage) {
        int from = placement.rankOf(fromStage);
        int to = placement.rankOf(toStage);
        int ranks = work.layout().pipeline();
        // neighbours, also over the end of a loop
        return work.hardware().hops().get((from + 1) % ranks == to ? from : to);
    }
}
