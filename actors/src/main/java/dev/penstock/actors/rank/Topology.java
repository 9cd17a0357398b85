package dev.penstock.actors.rank;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.FrameKind;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Questions about neighbouring stages that every part of a shard asks.
 *
 * @param lowestBackward the lowest stage that has a backward; as many as there are stages if none
 *     has
 * @param grid of shards, whose numbers may differ from stage to stage
 * @param rank the rank that asks
 */
record Topology(Placement placement, int lowestBackward, RankGrid grid, int rank) {
    /** As one of a pipeline's ranks sees it. */
    Topology(Schedule schedule, int rank) {
        this(schedule, RankGrid.pipeline(schedule.shape().ranks()), rank);
    }

    Topology(Schedule schedule, RankGrid grid, int rank) {
        this(schedule.placement(), schedule.lowestBackward(), grid, rank);
    }

    static Topology of(RunPlan plan, StepKind kind, int rank) {
        return new Topology(plan.schedule(kind), plan.grid(), rank);
    }

    /** Returns whether a stage's units wait for a backward after their forward. */
    boolean hasBackward(int stage) {
        return stage >= lowestBackward;
    }

    /** Returns whether the stage before wants the gradient of a stage's input. */
    boolean passesGradient(int stage) {
        return stage > lowestBackward;
    }

    boolean isLast(int stage) {
        return stage == placement.stages() - 1;
    }

    /** Returns whether a unit's input is handed over by the stage before, on the same rank. */
    boolean isHandedInput(WorkUnit unit) {
        return unit.stage() > 0 && !placement.crossesBefore(unit);
    }

    /** Returns whether a unit's output is handed over to the next stage, on the same rank. */
    boolean isHandedOutput(WorkUnit unit) {
        return !isLast(unit.stage()) && !placement.crossesAfter(unit);
    }

    /** Returns the channel that brings a unit its input. */
    ChannelKey activationInto(WorkUnit unit) {
        return into(FrameKind.ACTIVATION, unit.stage() - 1, unit);
    }

    /** Returns the channel that brings a unit the gradient of its output. */
    ChannelKey gradientInto(WorkUnit unit) {
        return into(FrameKind.GRADIENT, unit.stage() + 1, unit);
    }

    /**
     * Returns the channels that take a unit's output away: one, several to a stage of more shards,
     * or none where another shard sends what is the same.
     */
    List<ChannelKey> activationOutOf(WorkUnit unit) {
        return outOf(FrameKind.ACTIVATION, unit, unit.stage() + 1);
    }

    /** Returns the channels that take the gradient of a unit's input away; as many as above. */
    List<ChannelKey> gradientOutOf(WorkUnit unit) {
        return outOf(FrameKind.GRADIENT, unit, unit.stage() - 1);
    }

    private ChannelKey into(FrameKind kind, int from, WorkUnit unit) {
        if (!grid.isUneven()) {
            return channel(kind, from, unit.stage(), unit);
        }
        int sender = grid.sibling(rank, placement.rankOf(from));
        int place = grid.receivers(sender, placement.rankOf(unit.stage())).indexOf(rank);
        return new ChannelKey(kind, from, unit.stage(), 0, place);
    }

    private List<ChannelKey> outOf(FrameKind kind, WorkUnit unit, int to) {
        if (!grid.isUneven()) {
            return List.of(channel(kind, unit.stage(), to, unit));
        }
        int receivers = grid.receivers(rank, placement.rankOf(to)).size();
        return IntStream.range(0, receivers)
                .mapToObj(place -> new ChannelKey(kind, unit.stage(), to, 0, place))
                .toList();
    }

    private ChannelKey channel(FrameKind kind, int from, int to, WorkUnit unit) {
        return new ChannelKey(kind, from, to, peerOf(unit, from), peerOf(unit, to));
    }

    private int peerOf(WorkUnit unit, int stage) {
        return placement.wiring().map(wiring -> wiring.peerOf(unit.microBatch(), stage)).orElse(0);
    }
}
