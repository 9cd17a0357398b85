package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Costs that were measured: means by kind, stage and slice. {@link ProfileText} is their text, so
 * that a run can leave them behind and the next order can be simulated with them.
 *
 * <p>An order may have other kinds of op than the one that was measured: a full backward takes as
 * long as its parts together, a part half of the whole, a recompute as long as a forward; what it
 * gathers by itself goes to the part for the input. Transfers, gathers, reductions and copies
 * without a line take no time.
 */
public final class ProfileCosts implements CostModel {
    private record Work(ComputeKind kind, int stage, int slice) {}

    private final List<ProfileLine> lines;
    private final Map<Work, Long> computations = new HashMap<>();
    private final Map<Channel, Long> latencies = new HashMap<>();
    private final Map<Channel, Long> links = new HashMap<>();
    private final Map<Integer, Long> gathers = new HashMap<>();
    private final Map<Integer, Long> reductions = new HashMap<>();
    private final Map<Work, Long> gathering = new HashMap<>();
    private final Map<Integer, Long> gatherWork = new HashMap<>();
    private final Map<Integer, Long> reduceWork = new HashMap<>();
    private final Map<Integer, Long> offloads = new HashMap<>();
    private final Map<Integer, Long> reloads = new HashMap<>();
    private OptionalLong update = OptionalLong.empty();
    private double overlapFactor = 1;
    private boolean mixedLengths;

    /** Of several lines for the same thing the last one holds. */
    public ProfileCosts(List<ProfileLine> lines) {
        this.lines = List.copyOf(lines);
        for (ProfileLine line : lines) {
            switch (line) {
                case ProfileLine.Computation(ComputeKind kind, int stage, int slice, long nanos) ->
                        computations.put(new Work(kind, stage, slice), nanos);
                case ProfileLine.OverlapFactor(double factor) -> overlapFactor = factor;
                case ProfileLine.MixedLengths() -> mixedLengths = true;
                case ProfileLine.Latency(Channel channel, long nanos) ->
                        latencies.put(channel, nanos);
                case ProfileLine.Link(Channel channel, long nanos) -> links.put(channel, nanos);
                case ProfileLine.Gather(int stage, long nanos) -> gathers.put(stage, nanos);
                case ProfileLine.Reduce(int stage, long nanos) -> reductions.put(stage, nanos);
                case ProfileLine.Gathering(ComputeKind kind, int stage, int slice, long nanos) ->
                        gathering.put(new Work(kind, stage, slice), nanos);
                case ProfileLine.Offload(int stage, long nanos) -> offloads.put(stage, nanos);
                case ProfileLine.Reload(int stage, long nanos) -> reloads.put(stage, nanos);
                case ProfileLine.Update(long nanos) -> update = OptionalLong.of(nanos);
                case ProfileLine.GatherWork(int stage, long nanos) -> gatherWork.put(stage, nanos);
                case ProfileLine.ReduceWork(int stage, long nanos) -> reduceWork.put(stage, nanos);
            }
        }
    }

    public List<ProfileLine> lines() {
        return lines;
    }

    /** Whether the times are means over micro-batches of several lengths. */
    public boolean mixedLengths() {
        return mixedLengths;
    }

    /** What follows on the last op of a step; empty where that was not measured. */
    public OptionalLong updateNanos() {
        return update;
    }

    /** The same with computations alone: what was gathered, summed and copied is left out. */
    public ProfileCosts computing() {
        return new ProfileCosts(
                lines.stream()
                        .filter(
                                line ->
                                        line instanceof ProfileLine.Computation
                                                || line instanceof ProfileLine.OverlapFactor)
                        .toList());
    }

    /**
     * What a schedule computes and this profile says nothing of, such as {@code forward of stage 3,
     * slice 0}; empty if the schedule can be simulated.
     */
    public List<String> missing(Schedule schedule) {
        Set<Work> missing = new LinkedHashSet<>();
        for (var program : schedule.programs()) {
            for (Op op : program.ops()) {
                for (Op.Compute part : op.computations()) {
                    if (known(part).isEmpty()) {
                        WorkUnit unit = part.unit();
                        missing.add(new Work(ComputeKind.of(part), unit.stage(), unit.slice()));
                    }
                }
            }
        }
        return missing.stream()
                .map(w -> "%s of stage %d, slice %d".formatted(w.kind.text(), w.stage, w.slice))
                .toList();
    }

    /**
     * {@inheritDoc}
     *
     * @throws IllegalArgumentException for what is {@link #missing}
     */
    @Override
    public long nanos(int rank, int position, Op op) {
        return switch (op) {
            case Op.Compute computation ->
                    gathering(computation)
                            + known(computation)
                                    .orElseThrow(
                                            () ->
                                                    new IllegalArgumentException(
                                                            "the profile has no cost for " + op));
            case Op.Overlapped(Op.Forward forward, Op.Compute partner) ->
                    Math.round(
                            overlapFactor
                                    * (nanos(rank, position, forward)
                                            + nanos(rank, position, partner)));
            case Op.GatherParameters(int stage, _) -> gatherWork.getOrDefault(stage, 0L);
            case Op.ReduceGradients(int stage) -> reduceWork.getOrDefault(stage, 0L);
            case Op.Transfer _, Op.ActivationOp _, Op.ReleaseParameters _ -> 0;
        };
    }

    private long gathering(Op.Compute op) {
        Long nanos = gathering(ComputeKind.of(op), op.unit());
        return nanos != null
                ? nanos
                : switch (op) {
                    case Op.Forward _, Op.BackwardWeight _ -> 0;
                    case Op.Recompute _ -> orNothing(gathering(ComputeKind.FORWARD, op.unit()));
                    case Op.Backward _ ->
                            orNothing(gathering(ComputeKind.BACKWARD_INPUT, op.unit()));
                    case Op.BackwardInput _ ->
                            orNothing(gathering(ComputeKind.BACKWARD, op.unit()));
                };
    }

    private @Nullable Long gathering(ComputeKind kind, WorkUnit unit) {
        return gathering.get(new Work(kind, unit.stage(), unit.slice()));
    }

    private static long orNothing(@Nullable Long nanos) {
        return nanos == null ? 0 : nanos;
    }

    private OptionalLong known(Op.Compute op) {
        WorkUnit unit = op.unit();
        OptionalLong measured = measured(ComputeKind.of(op), unit);
        return measured.isPresent()
                ? measured
                : switch (op) {
                    case Op.Forward _ -> measured;
                    case Op.Recompute _ -> measured(ComputeKind.FORWARD, unit);
                    case Op.Backward _ -> whole(unit);
                    case Op.BackwardInput _ -> firstHalf(unit);
                    case Op.BackwardWeight _ -> secondHalf(unit);
                };
    }

    private OptionalLong measured(ComputeKind kind, WorkUnit unit) {
        Long nanos = computations.get(new Work(kind, unit.stage(), unit.slice()));
        return nanos == null ? OptionalLong.empty() : OptionalLong.of(nanos);
    }

    private OptionalLong whole(WorkUnit unit) {
        OptionalLong input = measured(ComputeKind.BACKWARD_INPUT, unit);
        OptionalLong weight = measured(ComputeKind.BACKWARD_WEIGHT, unit);
        return input.isPresent() && weight.isPresent()
                ? OptionalLong.of(input.getAsLong() + weight.getAsLong())
                : OptionalLong.empty();
    }

    private OptionalLong firstHalf(WorkUnit unit) {
        OptionalLong all = measured(ComputeKind.BACKWARD, unit);
        return all.isPresent() ? OptionalLong.of(all.getAsLong() / 2) : all;
    }

    private OptionalLong secondHalf(WorkUnit unit) {
        OptionalLong all = measured(ComputeKind.BACKWARD, unit);
        return all.isPresent() ? OptionalLong.of(all.getAsLong() - all.getAsLong() / 2) : all;
    }

    @Override
    public long latencyNanos(Channel channel) {
        return latencies.getOrDefault(channel, 0L);
    }

    @Override
    public long occupancyNanos(Channel channel, WorkUnit unit) {
        return links.getOrDefault(channel, 0L);
    }

    @Override
    public long backgroundNanos(int rank, Op op) {
        return switch (op) {
            case Op.GatherParameters _ -> gathers.getOrDefault(op.stage(), 0L);
            case Op.ReduceGradients(int stage) -> reductions.getOrDefault(stage, 0L);
            case Op.Offload _ -> offloads.getOrDefault(op.stage(), 0L);
            case Op.Reload _ -> reloads.getOrDefault(op.stage(), 0L);
            case Op.Compute _, Op.Transfer _, Op.Overlapped _, Op.ReleaseParameters _ -> 0;
        };
    }
}
