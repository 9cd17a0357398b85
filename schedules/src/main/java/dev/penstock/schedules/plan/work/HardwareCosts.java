package dev.penstock.schedules.plan.work;

import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.Traffic;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.ToLongFunction;
import java.util.stream.IntStream;

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

    /** By stage: of all its parameters; 0 where computations gather them. */
    private final long[] gathers;

    /** By slice: bytes of what one shard sends to one shard of the next stage. */
    private final long[] hopBytes;

    /** By stage and slice: one way of a unit's activations between device and host. */
    private final long[][] moves;

    private final int boundaryParts;

    /** Bytes of a token on its way; 0 where tensors travel as they are. */
    private final ToLongFunction<Channel> codedBytes;

    /** Whether one op of a pair computes while the other waits for a sum of tensor shards. */
    private final boolean pairsAtOnce;

    public HardwareCosts(
            PipelineWork work, Placement placement, StageTimes times, long[] reductions) {
        this(
                work,
                placement,
                times,
                reductions,
                new long[placement.stages()],
                new long[placement.stages()][work.slices()],
                work.layout().boundaryParts(),
                _ -> 0,
                true);
    }

    private HardwareCosts(
            PipelineWork work,
            Placement placement,
            StageTimes times,
            long[] reductions,
            long[] gathers,
            long[][] moves,
            int boundaryParts,
            ToLongFunction<Channel> codedBytes,
            boolean pairsAtOnce) {
        this.work = work;
        this.pairsAtOnce = pairsAtOnce;
        this.moves = moves;
        this.boundaryParts = boundaryParts;
        this.codedBytes = codedBytes;
        this.placement = placement;
        this.times = times;
        this.reductions = reductions;
        this.gathers = gathers;
        this.hopBytes = new long[work.slices()];
        for (int slice = 0; slice < hopBytes.length; slice++) {
            hopBytes[slice] =
                    UnitBytes.hop(
                            work.request().model(),
                            work.request().bytes(),
                            boundaryParts,
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
        PipelineWork work = work(request, choice);
        var times = new StageTimes(work, partition, placement, choice.zero());
        return new HardwareCosts(
                work,
                placement,
                times,
                StepTail.reductions(work, partition, placement, choice.zero()),
                new long[placement.stages()],
                moves(work, partition, placement, ofStages(Set.of(), partition)),
                work.layout().boundaryParts(),
                _ -> 0,
                pairsAtOnce(choice));
    }

    /**
     * The costs of a run's order, in which gathers and sums of replicas are ops: they run beside
     * the computations, as often as the order has them. Where ZeRO 3 has no such ops for its
     * gathers, these are inside the computations, as in {@link #of}.
     *
     * @param partition blocks of each stage
     * @param order lowered as it is run
     * @param rerun blocks, counted over the whole model, whose forward runs again right before
     *     their backward; beside what the order or the choice recomputes
     */
    public static HardwareCosts ofRun(
            PlanRequest request,
            PlanChoice choice,
            List<Integer> partition,
            Schedule order,
            Set<Integer> rerun,
            int boundaryParts) {
        PipelineWork work = work(request, choice);
        Placement placement = order.placement();
        boolean byOps =
                order.programs().stream()
                        .flatMap(program -> program.ops().stream())
                        .anyMatch(op -> op instanceof Op.GatherParameters);
        var inside =
                new StageTimes.Inside(
                        choice.zero().dividesParameters() && !byOps,
                        false,
                        ofStages(rerun, partition));
        return new HardwareCosts(
                work,
                placement,
                new StageTimes(work, partition, placement, inside),
                StepTail.sums(work, partition, placement, choice.zero()),
                StepTail.gathers(work, partition, placement),
                moves(work, partition, placement, ofStages(rerun, partition)),
                boundaryParts,
                _ -> 0,
                pairsAtOnce(choice) && rerun.isEmpty());
    }

    private static long[][] moves(
            PipelineWork work, List<Integer> partition, Placement placement, List<Integer> rerun) {
        long[][] moves = new long[partition.size()][work.slices()];
        for (int stage = 0; stage < moves.length; stage++) {
            int rank = placement.rankOf(stage);
            PipelineWork.RankWork own = work.ranks().get(rank);
            int again = rerun.get(stage);
            boolean last = stage == moves.length - 1;
            for (int slice = 0; slice < work.slices(); slice++) {
                long inputs =
                        again
                                * UnitBytes.recomputed(
                                        work.request().model(),
                                        work.request().bytes(),
                                        own.shards(),
                                        work.tokens(slice),
                                        work.slices() > 1);
                long bytes =
                        work.keptBytes(rank, slice, partition.get(stage) - again, last) + inputs;
                moves[stage][slice] = Math.round(1e9 * bytes / own.hardware().hostBytesPerSecond());
            }
        }
        return moves;
    }

    /**
     * The same where all parameters lie in a folder: each gather loads a stage's, each reduction
     * writes its gradients.
     *
     * @param partition blocks of each stage
     */
    public HardwareCosts swapped(List<Integer> partition) {
        long[] loads = new long[partition.size()];
        long[] writes = new long[partition.size()];
        for (int stage = 0; stage < loads.length; stage++) {
            int rank = placement.rankOf(stage);
            boolean first = stage == 0;
            boolean last = stage == loads.length - 1;
            double rate = work.ranks().get(rank).hardware().diskBytesPerSecond() / 1e9;
            int blocks = partition.get(stage);
            loads[stage] =
                    Math.round(
                            work.stageParameters(rank, blocks, first, last)
                                    * work.request().bytes().parameter()
                                    / rate);
            writes[stage] =
                    Math.round(
                            work.trainedParameters(rank, blocks, first, last)
                                    * work.request().bytes().gradient()
                                    / rate);
        }
        return new HardwareCosts(
                work, placement, times, writes, loads, moves, boundaryParts, codedBytes, false);
    }

    /**
     * The same with tensors that travel coded.
     *
     * @param bytesOfToken bytes of a token's coded row; 0 where they travel as they are
     */
    public HardwareCosts coded(ToLongFunction<Channel> bytesOfToken) {
        return new HardwareCosts(
                work,
                placement,
                times,
                reductions,
                gathers,
                moves,
                boundaryParts,
                bytesOfToken,
                pairsAtOnce);
    }

    /** The same of replicas that take steps alone: each sums what it computes itself. */
    public HardwareCosts apart() {
        return new HardwareCosts(
                work,
                placement,
                times,
                new long[reductions.length],
                gathers,
                moves,
                boundaryParts,
                codedBytes,
                pairsAtOnce);
    }

    /** The same where the ops of a pair run one after the other. */
    public HardwareCosts oneOpAtATime() {
        return new HardwareCosts(
                work,
                placement,
                times,
                reductions,
                gathers,
                moves,
                boundaryParts,
                codedBytes,
                false);
    }

    /** Where stages need not gather parameters or run blocks again. */
    private static boolean pairsAtOnce(PlanChoice choice) {
        return choice.zero() == ZeroStage.NONE && !choice.recompute();
    }

    static PipelineWork work(PlanRequest request, PlanChoice choice) {
        return PipelineWork.of(
                request,
                LayoutHardware.of(request.cluster(), choice.layout()),
                request.batch() / choice.layout().data() / choice.microBatches(),
                choice.sliceLengths(),
                choice.recompute());
    }

    /** How many of these blocks each stage has. */
    private static List<Integer> ofStages(Set<Integer> blocks, List<Integer> partition) {
        List<Integer> counts = new ArrayList<>();
        int first = 0;
        for (int count : partition) {
            int end = first + count;
            counts.add((int) IntStream.range(first, end).filter(blocks::contains).count());
            first = end;
        }
        return counts;
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
            case Op.Overlapped(Op.Forward f, Op.Compute p) ->
                    pair(nanos(rank, position, f), f, nanos(rank, position, p), p);
            case Op.Transfer _, Op.ActivationOp _, Op.ParameterOp _, Op.ReduceGradients _ -> 0;
        };
    }

    /** Computations take turns while the other one's sums go on. */
    private long pair(long forward, Op.Forward f, long partner, Op.Compute p) {
        if (!pairsAtOnce) {
            return forward + partner;
        }
        long computing = forward + partner - sums(f) - sums(p);
        return Math.max(computing, Math.max(forward, partner));
    }

    /** Those that are part of a computation's time. */
    private long sums(Op.Compute op) {
        int stage = op.stage();
        int slice = op.unit().slice();
        return switch (op) {
            case Op.Forward _, Op.BackwardInput _, Op.Backward _, Op.Recompute _ ->
                    times.sums(stage, slice);
            case Op.BackwardWeight _ -> 0;
        };
    }

    @Override
    public long backgroundNanos(int rank, Op op) {
        return switch (op) {
            case Op.ReduceGradients(int stage) -> reductions[stage];
            case Op.GatherParameters(int stage, LayerRange layers) ->
                    Math.round(gathers[stage] * times.share(stage, layers));
            case Op.ActivationOp move -> moves[move.stage()][move.unit().slice()];
            case Op.Compute _, Op.Transfer _, Op.Overlapped _, Op.ReleaseParameters _ -> 0;
        };
    }

    @Override
    public long latencyNanos(Channel channel) {
        return linkOf(channel.fromStage(), channel.toStage()).latencyNanos();
    }

    @Override
    public long occupancyNanos(Channel channel, WorkUnit unit) {
        Link link = linkOf(channel.fromStage(), channel.toStage());
        return Math.round(link.nanos((double) bytes(channel, unit.slice())));
    }

    @Override
    public long bytes(Channel channel, WorkUnit unit) {
        return bytes(channel, unit.slice());
    }

    private long bytes(Channel channel, int slice) {
        long ofToken = codedBytes.applyAsLong(channel);
        long one =
                ofToken == 0
                        ? hopBytes[slice]
                        : Math.ceilDiv(work.tokens(slice), (long) boundaryParts) * ofToken;
        int from = placement.rankOf(channel.fromStage());
        return one * work.layout().copies(from, placement.rankOf(channel.toStage()));
    }

    /** How long a slice is under way from a stage to the next; 0 on the same rank. */
    public long hopNanos(int stage, int slice) {
        return wayNanos(stage, new Channel(stage, stage + 1), slice);
    }

    /** How long its gradient is under way back to this stage; 0 on the same rank. */
    public long returnNanos(int stage, int slice) {
        return wayNanos(stage, new Channel(stage + 1, stage), slice);
    }

    private long wayNanos(int stage, Channel channel, int slice) {
        if (!placement.crossesAfter(stage)) {
            return 0;
        }
        Link link = linkOf(channel.fromStage(), channel.toStage());
        long bytes = bytes(channel, slice);
        return link.latencyNanos() + Math.round(link.nanos((double) bytes));
    }

    private Link linkOf(int fromStage, int toStage) {
        int from = placement.rankOf(fromStage);
        int to = placement.rankOf(toStage);
        int ranks = work.layout().pipeline();
        if ((from + 1) % ranks == to) {
            return work.hardware().hops().get(from);
        }
        return (to + 1) % ranks == from
                ? work.hardware().hops().get(to)
                : RankHardware.hop(work.request().cluster(), work.layout(), from, to);
    }
}
