package dev.penstock.actors.rank;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.FrameKind;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;

/**
 * Questions about neighbouring stages that every part of a shard asks.
 *
 * @param lowestBackward the lowest stage that has a backward; as many as there are stages if none
 *     has
 */
record Topology(Placement placement, int lowestBackward) {
    Topology(Schedule schedule) {
        this(schedule.placement(), schedule.lowestBackward());
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
        return channel(FrameKind.ACTIVATION, unit.stage() - 1, unit.stage(), unit);
    }

    /** Returns the channel that brings a unit the gradient of its output. */
    ChannelKey gradientInto(WorkUnit unit) {
        return channel(FrameKind.GRADIENT, unit.stage() + 1, unit.stage(), unit);
    }

    /** Returns the channel that takes a unit's output away. */
    ChannelKey activationOutOf(WorkUnit unit) {
        return channel(FrameKind.ACTIVATION, unit.stage(), unit.stage() + 1, unit);
    }

    /** Returns the channel that takes the gradient of a unit's input away. */
    ChannelKey gradientOutOf(WorkUnit unit) {
        return channel(FrameKind.GRADIENT, unit.stage(), unit.stage() - 1, unit);
    }

    private ChannelKey channel(FrameKind kind, int from, int to, WorkUnit unit) {
        return new ChannelKey(kind, from, to, peerOf(unit, from), peerOf(unit, to));
    }

    private int peerOf(WorkUnit unit, int stage) {
        return placement.wiring().map(wiring -> wiring.peerOf(unit.microBatch(), stage)).orElse(0);
    }
}
