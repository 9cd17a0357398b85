package dev.penstock.actors.fault;

import java.util.List;

/**
 * The faults of a run, in the order of its configuration; a fault's index names it in markers and
 * reports.
 */
public record FaultPlan(List<Fault> faults) {
    public static final FaultPlan NONE = new FaultPlan(List.of());

    public FaultPlan {
        faults = List.copyOf(faults);
    }

    public boolean isEmpty() {
        return faults.isEmpty();
    }
}
