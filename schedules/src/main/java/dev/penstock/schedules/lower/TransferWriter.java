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

/**
 * Runs a schedule of computations with channels of a given capacity and writes down the transfers.
 * Work is linear in ops; of several ranks that could move, the order in which they do has no
 * influence on the result until all are stuck, and then the lowest rank is helped.
 */
final class TransferWriter {
    private final Schedule schedule;
    private final Placement placement;
    private final Transfers transfers;
    private final int capacity;
    private final List<ProgramWriter> written = new ArrayList<>();
    private final int[] position;

    /** A rank's sends that wait for room in their channels, in order. */
    private final List<ArrayDeque<Op>> pendingSends = new ArrayList<>();

    /** Receives of the tensors that lie in a channel, as they were sent; see {@link #channel}. */
    private final List<ArrayDeque<Op>> inChannel = new ArrayList<>();

    /** Tensors that arrived: activations by unit, then gradients by unit. */
    private final BitSet received = new BitSet();

    private final ArrayDeque<Integer> movable = new ArrayDeque<>();

    /**
     * @param capacity most tensors in a channel, at least 1
     */
    TransferWriter(Schedule schedule, int capacity) {
        this.schedule = schedule;
        this.placement = schedule.placement();
        this.transfers = new Transfers(schedule);
        this.capacity = capacity;
        int ranks = schedule.shape().ranks();
        this.position = new int[ranks];
        for (int channel = 0; channel < 2 * schedule.shape().stages(); channel++) {
            inChannel.add(new ArrayDeque<>());
        }
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
            transfers.sendsAfter(op, sends::add);
        }
    }

    private boolean receiveAll(int rank, Op op) {
        var missing = new ArrayDeque<Op>(2);
        transfers.receivesBefore(op, missing::add);
        while (!missing.isEmpty()) {
            Op receive = missing.remove();
            if (!received.get(tensor(receive)) && !receive(rank, receive)) {
                return false;
            }
        }
        return true;
    }

    private boolean send(int rank, Op send) {
        Op receive = pairOf(send);
        ArrayDeque<Op> lying = inChannel.get(channel(receive));
        if (lying.size() == capacity) {
            return false;
        }
        written.get(rank).add(send);
        lying.add(receive);
        movable.add(placement.rankOf(receive.stage()));
        return true;
    }

    /**
     * Takes a tensor out of its channel, in whatever order it was sent; false if it is not there.
     */
    private boolean receive(int rank, Op receive) {
        if (!inChannel.get(channel(receive)).remove(receive)) {
            return false;
        }
        written.get(rank).add(receive);
        received.set(tensor(receive));
        movable.add(placement.rankOf(senderOf(receive)));
        return true;
    }

    /** Everybody waits: makes room in the channel that the lowest blocked sender waits for. */
    private boolean receiveEarly() {
        for (ArrayDeque<Op> sends : pendingSends) {
            if (!sends.isEmpty()) {
                Op oldest = inChannel.get(channel(pairOf(sends.getFirst()))).getFirst();
                return receive(placement.rankOf(oldest.stage()), oldest);
            }
        }
        return false;
    }

    /** What a rank could not run, so that the judge sees all of it. */
    private void writeRest(int rank) {
        List<Op> ops = schedule.program(rank).ops();
        ProgramWriter program = written.get(rank);
        pendingSends.get(rank).forEach(program::add);
        for (Op op : ops.subList(position[rank], ops.size())) {
            transfers.receivesBefore(
                    op,
                    receive -> {
                        if (!received.get(tensor(receive))) {
                            program.add(receive);
                        }
                    });
            program.add(op);
            transfers.sendsAfter(op, program::add);
        }
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
