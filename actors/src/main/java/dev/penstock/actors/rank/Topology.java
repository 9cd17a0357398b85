package dev.penstock.actors.rank;

import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.Schedule;

/** Questions about neighbouring stages that every part of a shard asks. */
record Topology(Placement placement) {
    Topology(Schedule schedule) {
        this(schedule.placement());
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
