package dev.penstock.schedules.lower;

import dev.penstock.schedules.ir.Channels;
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

    private final Channels channels;

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
        this.channels = new Channels(schedule);
        for (int channel = 0; channel < channels.count(); channel++) {
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
        movable.add(placement.rankOf(unit(receive)));
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
                return receive(placement.rankOf(unit(oldest)), oldest);
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
                    Op.ActivationOp _,
                    Op.ParameterOp _,
                    Op.ReduceGradients _ ->
                    throw new IllegalArgumentException(send + " is no send");
        };
    }

    private static WorkUnit unit(Op receive) {
        return ((Op.UnitOp) receive).unit();
    }

    private static WorkUnit senderOf(Op receive) {
        return unit(receive)
                .onStage(isActivation(receive) ? receive.stage() - 1 : receive.stage() + 1);
    }

    private int channel(Op receive) {
        int microBatch = unit(receive).microBatch();
        return isActivation(receive)
                ? channels.activationsInto(receive.stage(), microBatch)
                : channels.gradientsInto(receive.stage(), microBatch);
    }

    private int tensor(Op receive) {
        int index = schedule.shape().indexOf(unit(receive));
        return isActivation(receive) ? index : schedule.shape().units() + index;
    }

    private static boolean isActivation(Op receive) {
        return receive instanceof Op.ReceiveActivation;
    }
}
