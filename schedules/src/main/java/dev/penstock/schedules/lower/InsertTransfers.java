package dev.penstock.schedules.lower;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;

/**
 * Adds sends and receives to a schedule of computations. A send stands right after the op that
 * makes the tensor, a receive right before the op that needs it, as late as it can: a rank never
 * waits for a tensor while it could compute.
 *
 * <p>Late receives alone could hang where sends block: two neighbours that both send first, each
 * waiting for the other to take what lies in the channel, stop for ever. So the pass writes the
 * programs while it runs them with channels that hold a single tensor; when nobody can move, the
 * receiver of a full channel takes its tensor early. The result has an order that works with a
 * capacity of one everywhere, hence with every capacity. Neighbouring stages on one rank hand over
 * without a transfer.
 */
public final class InsertTransfers {
    private InsertTransfers() {}

    /**
     * The schedule with its transfers; one that has transfers already comes back as it is.
     *
     * <p>Orders that cannot run (a circular wait, a missing op) get their transfers too, so that
     * the judge can say what is wrong.
     *
     * @throws IllegalArgumentException for an op of a unit that does not exist
     */
    public static Schedule into(Schedule schedule) {
        if (schedule.hasTransfers()) {
            return schedule;
        }
        requireKnownUnits(schedule);
        return schedule.withPrograms(new TransferWriter(schedule).write());
    }

    private static void requireKnownUnits(Schedule schedule) {
        for (RankProgram program : schedule.programs()) {
            for (Op op : program.ops()) {
                boolean known =
                        op.computations().stream()
                                .allMatch(part -> schedule.shape().contains(part.unit()));
                if (!known) {
                    throw new IllegalArgumentException(
                            "cannot lower %s of rank %d: %s has no such unit; validate it first"
                                    .formatted(
                                            OpText.print(op, schedule.shape()),
                                            program.rank(),
                                            schedule.name()));
                }
            }
        }
    }
}
