package dev.penstock.schedules.simulate;

import java.util.List;

/**
 * How far a schedule ran.
 *
 * @param timeline the ops that ran, which are all if nobody is stuck
 * @param stuck the ranks that stand still for ever, rising
 */
public record Simulation(Timeline timeline, List<BlockedOp> stuck) {
    public Simulation {
        stuck = List.copyOf(stuck);
    }

    public boolean finished() {
        return stuck.isEmpty();
    }
}
