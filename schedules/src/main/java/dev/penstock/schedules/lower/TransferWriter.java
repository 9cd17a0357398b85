package dev.penstock.schedules.lower;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.ProgramWriter;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Runs a schedule of computations with channels of one tensor and writes down the transfers. Work
 * is linear in ops; of several ranks that could move, the order in which they do has no influence
 * on the result until all are stuck, and then the lowest rank is helped.
 */
final class TransferWriter {
    private final Schedule schedule;
    private final Placement placement;
    private final List<ProgramWriter> written = new ArrayList<>();
    private final int[] position;

    /** A rank's sends that wait for their channels to be empty, in order. */
    private final List<ArrayDeque<Op>> pendingSends = new ArrayList<>();

    /** Receive of the tensor that lies in a channel; see {@link #channel}. */
    private final @Nullable Op[] inChannel;

    /** Tensors that arrived: activations by unit, then gradients by unit. */
    private final BitSet received = new BitSet();

    private final ArrayDeque<Integer> movable = new ArrayDeque<>();

    TransferWriter(Schedule schedule) {
        this.schedule = schedule;
        this.placement = schedule.placement();
        int ranks = schedule.shape().ranks();
        this.position = new int[ranks];
        this.inChannel = new @Nullable Op[2 * schedule.shape().stages()];
        for (int rank = 0; rank < ranks; rank++) {
            int computations = schedule.program(rank).ops().size();
            written.add(new ProgramWriter(rank, 3 * computations));
            pendingSends.add(new ArrayDeque<>());
            movable.add(rank);
        }
    }

    List<RankProgram> write() {
        do {
            while (!movable.isEmpty()) {
                run(movable.remove());
            }
        } while (receiveEarly());
        var programs = new ArrayList<RankProgram>();
        for (int rank = 0; rank < written.size(); rank++) {
            writeRest(rank);
            programs.add(written.get(rank).program());
        }
        return programs;
    }

    /** Lets a rank run until it must wait. */
    private void run(int rank) {
        List<Op> ops = schedule.program(rank).ops();
        ArrayDeque<Op> sends = pendingSends.get(rank);
        while (true) {
            while (!sends.isEmpty()) {
                if (!send(rank, sends.getFirst())) {
                    return;
                }
                sends.removeFirst();
            }
            if (position[rank] == ops.size() || !receiveAll(rank, ops.get(position[rank]))) {
                return;
            }
            Op op = ops.get(position[rank]);
            written.get(rank).add(op);
            position[rank]++;
            addSends(op, sends::add);
        }
    }

    private boolean receiveAll(int rank, Op op) {
        for (Op.Compute part : op.computations()) {
            @Nullable Op receive = receiveBefore(part);
            if (receive != null && !received.get(tensor(receive)) && !receive(rank, receive)) {
                return false;
            }
        }
        return true;
    }

    private void addSends(Op op, Consumer<Op> sends) {
        for (Op.Compute part : op.computations()) {
            @Nullable Op send = sendAfter(part);
            if (send != null) {
                sends.accept(send);
            }
        }
    }

    private boolean send(int rank, Op send) {
        Op receive = pairOf(send);
        if (inChannel[channel(receive)] != null) {
            return false;
        }
        written.get(rank).add(send);
        inChannel[channel(receive)] = receive;
        movable.add(placement.rankOf(receive.stage()));
        return true;
    }

    private boolean receive(int rank, Op receive) {
        if (!receive.equals(inChannel[channel(receive)])) {
            return false;
        }
        written.get(rank).add(receive);
        received.set(tensor(receive));
        inChannel[channel(receive)] = null;
        movable.add(placement.rankOf(senderOf(receive)));
        return true;
    }

    /** Everybody waits: empties the channel that the lowest blocked sender waits for. */
    private boolean receiveEarly() {
        for (ArrayDeque<Op> sends : pendingSends) {
            @Nullable Op send = sends.peekFirst();
            if (send != null) {
                Op lying = inChannel[channel(pairOf(send))];
                if (lying != null) {
                    return receive(placement.rankOf(lying.stage()), lying);
                }
            }
        }
        return false;
    }

    /** What a rank could not run, so that the judge sees all of it. */
    private void writeRest(int rank) {
        List<Op> ops = schedule.program(rank).ops();
        ProgramWriter program = written.get(rank);
        pendingSends.get(rank).forEach(program::add);
        for (int i = position[rank]; i < ops.size(); i++) {
            for (Op.Compute part : ops.get(i).computations()) {
                @Nullable Op receive = receiveBefore(part);
                if (receive != null && !received.get(tensor(receive))) {
                    program.add(receive);
                }
            }
            program.add(ops.get(i));
            addSends(ops.get(i), program::add);
        }
    }

    private @Nullable Op receiveBefore(Op.Compute op) {
        return switch (op) {
            case Op.Forward(WorkUnit u) when placement.crossesBefore(u.stage()) ->
                    new Op.ReceiveActivation(u);
            case Op.InputGradient backward when placement.crossesAfter(op.stage()) ->
                    new Op.ReceiveGradient(backward.unit());
            case Op.Compute _ -> null;
        };
    }

    private @Nullable Op sendAfter(Op.Compute op) {
        return switch (op) {
            case Op.Forward(WorkUnit u) when placement.crossesAfter(u.stage()) ->
                    new Op.SendActivation(u);
            case Op.InputGradient backward when placement.crossesBefore(op.stage()) ->
                    new Op.SendGradient(backward.unit());
            case Op.Compute _ -> null;
        };
    }

    private static Op pairOf(Op send) {
        return switch (send) {
            case Op.SendActivation(WorkUnit u) ->
                    new Op.ReceiveActivation(u.onStage(u.stage() + 1));
            case Op.SendGradient(WorkUnit u) -> new Op.ReceiveGradient(u.onStage(u.stage() - 1));
            case Op.Compute _,
                    Op.Overlapped _,
                    Op.ReceiveActivation _,
                    Op.ReceiveGradient _,
                    Op.ParameterOp _,
                    Op.ReduceGradients _ ->
                    throw new IllegalArgumentException(send + " is no send");
        };
    }

    private static int senderOf(Op receive) {
        return isActivation(receive) ? receive.stage() - 1 : receive.stage() + 1;
    }

    private static int channel(Op receive) {
        return 2 * receive.stage() + (isActivation(receive) ? 0 : 1);
    }

    private int tensor(Op receive) {
        WorkUnit unit = ((Op.UnitOp) receive).unit();
        int index = schedule.shape().indexOf(unit);
        return isActivation(receive) ? index : schedule.shape().units() + index;
    }

    private static boolean isActivation(Op receive) {
        return receive instanceof Op.ReceiveActivation;
    }
}
