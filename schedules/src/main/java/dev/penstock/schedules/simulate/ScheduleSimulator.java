package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.Schedule;
import java.util.List;

/**
 * Runs a schedule in thought, with exactly the runtime's semantics. It is the only place that knows
 * them; the judge asks here whether a schedule gets stuck.
 *
 * <ul>
 *   <li>Each rank has a program counter; only the op at the counter may run.
 *   <li>A send needs a credit of its channel. Credits start at the channel's capacity. The send
 *       ends when the tensor is copied out, whether or not anybody receives it.
 *   <li>A receive waits until the tensor with exactly its key has been sent. When it ends, one
 *       credit goes back to the sender.
 *   <li>A reduction of gradients ends when every rank that holds a member of the stage's group has
 *       reached its first reduction of that group.
 *   <li>Without any transfers, a tensor for another rank is on its way when its computation ends,
 *       and the computation that needs it waits for it.
 * </ul>
 *
 * That an op comes after those of the same rank that it depends on is a matter of the order alone,
 * and for the judge to check. Every dependency is fixed in advance, so the times do not depend on
 * who is looked at first, and whether a schedule gets stuck does not depend on costs.
 */
public final class ScheduleSimulator {
    private ScheduleSimulator() {}

    /**
     * The times of all ops with unbounded channels. See {@link #simulate(Schedule, CostModel,
     * InFlight)}.
     */
    public static Timeline simulate(Schedule schedule, CostModel costs) {
        return simulate(schedule, costs, InFlight.unbounded());
    }

    /**
     * The times of all ops.
     *
     * @throws IllegalArgumentException if the schedule gets stuck
     */
    public static Timeline simulate(Schedule schedule, CostModel costs, InFlight inFlight) {
        Simulation simulation = run(schedule, costs, inFlight);
        if (!simulation.finished()) {
            BlockedOp wait = simulation.stuck().getFirst();
            throw new IllegalArgumentException(
                    "%s is blocked: rank %d at %s waits for %s (%d ranks are stuck); validate it"
                            .formatted(
                                    schedule.name(),
                                    wait.place().rank(),
                                    OpText.print(wait.place().op(), schedule.shape()),
                                    OpText.print(wait.awaited(), schedule.shape()),
                                    simulation.stuck().size()));
        }
        return simulation.timeline();
    }

    /** Runs as far as it goes. Ops of units that do not exist are passed over. */
    public static Simulation run(Schedule schedule, CostModel costs, InFlight inFlight) {
        var times = new RecordedTimes(schedule);
        List<BlockedOp> stuck = new Execution(schedule, costs, inFlight, times).run();
        return new Simulation(times.timeline(), stuck);
    }

    /** The ranks that stand still for ever, rising: {@link #run} without its timeline. */
    public static List<BlockedOp> stuck(Schedule schedule, InFlight inFlight) {
        return new Execution(schedule, CostModel.unit(), inFlight, OpTimes.IGNORED).run();
    }
}
