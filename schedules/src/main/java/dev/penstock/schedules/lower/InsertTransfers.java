package dev.penstock.schedules.lower;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.ProgramWriter;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;

/**
 * Adds sends and receives to a schedule of computations. A send stands right after the op that
 * makes the tensor, a receive right before the op that needs it, as late as it can: a rank never
 * waits for a tensor while it could compute. So with as many buffers as {@code InFlight.auto}
 * counts, the schedule cannot hang if its computations can run, and with unbounded channels it
 * takes exactly as long as without written transfers, whatever the ops cost. Neighbouring stages on
 * one rank hand over without a transfer.
 *
 * <p>With fewer buffers late receives could hang where sends block: two neighbours that both send
 * first, each waiting for the other to take what lies in the channel, stop for ever. For channels
 * of a given capacity the pass writes the programs while it runs them with such channels; when
 * nobody can move, the receiver of a full channel takes a tensor early, which may cost time. The
 * result has an order that works with this capacity everywhere, hence with every larger one.
 */
public final class InsertTransfers {
    private InsertTransfers() {}

    /**
     * The schedule with its transfers, receives as late as they can be; one that has transfers
     * already comes back as it is.
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
        var transfers = new Transfers(schedule);
        return schedule.withPrograms(
                schedule.programs().stream().map(program -> late(program, transfers)).toList());
    }

    /**
     * The same for channels that hold no more than {@code capacity} tensors: receives that would
     * hang stand earlier.
     *
     * @param capacity tensors sent and not yet received, at least 1
     * @throws IllegalArgumentException as of {@link #into(Schedule)}
     */
    public static Schedule into(Schedule schedule, int capacity) {
        if (capacity < 1) {
            throw new IllegalArgumentException(
                    "a channel needs a capacity of at least 1, got " + capacity);
        }
        if (schedule.hasTransfers()) {
            return schedule;
        }
        requireKnownUnits(schedule);
        return schedule.withPrograms(new TransferWriter(schedule, capacity).write());
    }

    private static RankProgram late(RankProgram program, Transfers transfers) {
        var written = new ProgramWriter(program.rank(), 3 * program.ops().size());
        program.ops().forEach(op -> transfers.writeAround(op, written));
        return written.program();
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
