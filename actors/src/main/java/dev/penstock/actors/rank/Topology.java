package dev.penstock.actors.rank;

import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.Schedule;

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

    /**
     * Returns whether both stages live on one rank, so that tensors are handed over without a
     * frame.
     */
    boolean isLocal(int stage, int other) {
        return placement.rankOf(stage) == placement.rankOf(other);
    }
}
