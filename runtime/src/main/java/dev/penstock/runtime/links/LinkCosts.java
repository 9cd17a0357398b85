package dev.penstock.runtime.links;

import dev.penstock.actors.collective.TensorMesh;
import dev.penstock.actors.dataplane.ChannelCodecs;
import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.FrameKind;
import dev.penstock.actors.dataplane.emulated.EmulatedLink;
import dev.penstock.actors.dataplane.emulated.EmulatedLinks;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.cuda.device.RowCodec;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.simulate.CostModel;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.function.BiFunction;
import java.util.stream.IntStream;

/**
 * Costs of a run whose boundary tensors travel over emulated links and coded: computations, and
 * links that are not emulated, as in other costs, in nanoseconds. Of the replicas and shards of a
 * stage those count that have the slowest link. Frames that are lost count on average.
 */
public final class LinkCosts implements CostModel {
    private final CostModel other;
    private final Placement placement;
    private final RankGrid grid;
    private final EmulatedLinks links;
    private final ChannelCodecs codecs;
    private final int width;

    /** By slice. */
    private final int[] rows;

    /** By stage: what its reductions wait for a gradient that another rank sends, each. */
    private final long[] shared;

    private LinkCosts(
            CostModel other,
            Schedule schedule,
            RankGrid grid,
            EmulatedLinks links,
            ChannelCodecs codecs,
            int width,
            int[] rows,
            long sharedBytes) {
        this.other = other;
        this.placement = schedule.placement();
        this.grid = grid;
        this.links = links;
        this.codecs = codecs;
        this.width = width;
        this.rows = rows;
        this.shared = new long[schedule.shape().stages()];
        for (List<Integer> group : schedule.sharedGroups()) {
            for (int stage : group) {
                for (int sender : group) {
                    long nanos =
                            slowest(sender, stage, sharedBytes)
                                    .map(link -> wholeNanos(link, sharedBytes))
                                    .orElse(0L);
                    long share = nanos / Math.max(1, reductions(schedule, stage));
                    shared[stage] = Math.max(shared[stage], share);
                }
            }
        }
    }

    private static long reductions(Schedule schedule, int stage) {
        return schedule.programs().stream()
                .flatMap(program -> program.ops().stream())
                .filter(op -> op instanceof Op.ReduceGradients && op.stage() == stage)
                .count();
    }

    /**
     * Returns the costs of a run's order.
     *
     * @param other in nanoseconds
     * @param schedule the order; slices as long as its own
     * @return the other costs where the run has neither emulated links nor a codec
     */
    public static CostModel of(CostModel other, Schedule schedule, RunConfig run) {
        return of(other, schedule, run, run.model().width());
    }

    /** Returns what adds the time of a run's tensors under way to the costs of an order. */
    public static BiFunction<CostModel, Schedule, CostModel> adding(RunConfig run) {
        return (costs, order) -> of(costs, order, run);
    }

    /**
     * Same as {@link #of(CostModel, Schedule, RunConfig)}.
     *
     * @param width of the model, where it is not the run's
     */
    public static CostModel of(CostModel other, Schedule schedule, RunConfig run, int width) {
        boolean asTheyAre =
                !run.dataPlane().emulated().areEmulated()
                        && run.codecs().activations().isEmpty()
                        && run.codecs().gradients().isEmpty();
        return asTheyAre
                ? other
                : new LinkCosts(
                        other,
                        schedule,
                        run.grid(),
                        run.dataPlane().emulated(),
                        run.codecs(),
                        width / run.parallel().mesh().side(),
                        rows(schedule, run),
                        sharedBytes(run, width));
    }

    /** Of the token table's gradient. */
    private static long sharedBytes(RunConfig run, int width) {
        long tokens = run.model().shape(run.data().tokenizer().vocabulary()).vocabulary();
        TensorMesh mesh = run.parallel().mesh();
        int holders = mesh.copiesOfMatrices().stream().mapToInt(mesh::size).sum();
        int parts = run.parallel().tensor() / Math.max(1, holders);
        return Math.ceilDiv(tokens, (long) parts) * width * Float.BYTES;
    }

    private static int[] rows(Schedule schedule, RunConfig run) {
        List<Integer> lengths = schedule.shape().sliceLengths();
        long whole = lengths.stream().mapToLong(length -> length).sum();
        long tokens =
                (long) run.batch().sequencesPerMicroBatch()
                        * run.model().context()
                        / run.parallel().context();
        int shards =
                run.parallel().sequence()
                        ? run.parallel().tensor()
                        : run.parallel().mesh().sequenceParts();
        return lengths.stream()
                .mapToInt(length -> (int) (tokens * length / whole / shards))
                .toArray();
    }

    /**
     * Returns costs with the time that coding takes; what links take is in the others.
     *
     * @param rows of a unit, by slice
     */
    public static CostModel coded(
            CostModel other, Schedule schedule, ChannelCodecs codecs, int width, int[] rows) {
        return new LinkCosts(
                other,
                schedule,
                RankGrid.pipeline(schedule.shape().ranks()),
                EmulatedLinks.NONE,
                codecs,
                width,
                rows.clone(),
                0);
    }

    @Override
    public long nanos(int rank, int position, Op op) {
        long nanos = other.nanos(rank, position, op);
        return switch (op) {
            case Op.SendActivation(WorkUnit unit) ->
                    nanos + encodeNanos(new Channel(unit.stage(), unit.stage() + 1), unit);
            case Op.SendGradient(WorkUnit unit) ->
                    nanos + encodeNanos(new Channel(unit.stage(), unit.stage() - 1), unit);
            case Op.ReceiveActivation(WorkUnit unit) ->
                    nanos + decodeNanos(Channel.activationsInto(unit.stage()), unit);
            case Op.ReceiveGradient(WorkUnit unit) ->
                    nanos + decodeNanos(Channel.gradientsInto(unit.stage()), unit);
            case Op.Compute _,
                    Op.Overlapped _,
                    Op.ActivationOp _,
                    Op.ParameterOp _,
                    Op.ReduceGradients _ ->
                    nanos;
        };
    }

    private long encodeNanos(Channel channel, WorkUnit unit) {
        return codec(channel)
                .map(codec -> CodingRate.of(codec).encodeNanos(floats(unit)))
                .orElse(0L);
    }

    private long decodeNanos(Channel channel, WorkUnit unit) {
        return codec(channel)
                .map(codec -> CodingRate.of(codec).decodeNanos(floats(unit)))
                .orElse(0L);
    }

    private Optional<RowCodec> codec(Channel channel) {
        return codecs.of(key(channel));
    }

    private long floats(WorkUnit unit) {
        return (long) rows[unit.slice()] * width;
    }

    private static ChannelKey key(Channel channel) {
        return new ChannelKey(
                channel.forward() ? FrameKind.ACTIVATION : FrameKind.GRADIENT,
                channel.fromStage(),
                channel.toStage());
    }

    @Override
    public long latencyNanos(Channel channel) {
        long bytes = IntStream.of(rows).mapToLong(count -> bytes(channel, count)).max().orElse(0);
        return slowest(channel, bytes)
                .map(link -> link.meanLatencyNanos(bytes))
                .orElseGet(() -> other.latencyNanos(channel));
    }

    @Override
    public long occupancyNanos(Channel channel, WorkUnit unit) {
        long bytes = bytes(channel, rows[unit.slice()]);
        return slowest(channel, bytes)
                .map(link -> link.meanNanos(bytes))
                .orElseGet(() -> other.occupancyNanos(channel, unit));
    }

    private long bytes(Channel channel, int count) {
        return codecs.bytes(key(channel), count, width);
    }

    private Optional<EmulatedLink> slowest(Channel channel, long bytes) {
        return placement.wiring().isPresent()
                ? links.between(placement.senderOf(channel), placement.receiverOf(channel))
                : slowest(channel.fromStage(), channel.toStage(), bytes);
    }

    /** The way from one stage to another; empty where nothing is emulated or nothing travels. */
    private Optional<EmulatedLink> slowest(int fromStage, int toStage, long bytes) {
        int from = placement.rankOf(fromStage);
        int to = placement.rankOf(toStage);
        if (from == to) {
            return Optional.empty();
        }
        return IntStream.range(0, grid.ranks())
                .filter(rank -> grid.placeOf(rank).pipeline() == from)
                .mapToObj(rank -> links.between(rank, grid.sibling(rank, to)))
                .flatMap(Optional::stream)
                .max(Comparator.comparingLong(link -> wholeNanos(link, bytes)));
    }

    private static long wholeNanos(EmulatedLink link, long bytes) {
        return link.meanLatencyNanos(bytes) + link.meanNanos(bytes);
    }

    @Override
    public long backgroundNanos(int rank, Op op) {
        long nanos = other.backgroundNanos(rank, op);
        return op instanceof Op.ReduceGradients(int stage) ? nanos + shared[stage] : nanos;
    }
}
