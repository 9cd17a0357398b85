package dev.penstock.actors.rank;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.OfferResult;
import dev.penstock.actors.dataplane.direct.DirectTransfers;
import dev.penstock.actors.dataplane.direct.TransferPath;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.WorkUnit;

import org.jspecify.annotations.Nullable;

import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Moves boundary tensors to and from other ranks: from device to device where both ranks live in
 * one process and their devices allow it, otherwise as frames of the data plane. Never blocks. The
 * rank's thread only.
 */
final class BoundaryLinks {
    /**
     * How many ops after a computation are searched for receives whose tensor has already arrived.
     */
    private static final int LOOK_AHEAD = 4;

    private final RankProgram program;
    private final Topology topology;
    private final BoundaryBuffers buffers;
    private final Endpoint endpoint;
    private final DirectTransfers direct;

    /** Arrived tensors whose copy to the device has begun before their receive has run. */
    private final Set<FrameKey> broughtEarly = new HashSet<>();

    private long pass;

    BoundaryLinks(
            RankProgram program,
            Topology topology,
            BoundaryBuffers buffers,
            Endpoint endpoint,
            DirectTransfers direct) {
        this.program = program;
        this.topology = topology;
        this.buffers = buffers;
        this.endpoint = endpoint;
        this.direct = direct;
    }

    static DataPlaneException linkFailed(String reason) {
        return new DataPlaneException("the data plane failed: " + reason);
    }

    void begin(long newPass) {
        pass = newPass;
        broughtEarly.clear();
    }

    /**
     * Returns whether a tensor bypasses the data plane, so that its memory is free once it is sent.
     */
    boolean isDirect(ChannelKey channel, Tensor tensor) {
        return direct.way(channel, tensor) == TransferPath.DIRECT;
    }

    /**
     * Starts the copy to the memory that the data plane reads, so that it overlaps the next ops.
     */
    void prepare(List<ChannelKey> channels, Tensor computed) {
        if (!channels.stream().allMatch(channel -> isDirect(channel, computed))) {
            computed.buffer().beginToHost(computed.bytes());
        }
    }

    /** Sends a tensor, or returns what is in its way. */
    Progress offer(WorkUnit unit, ChannelKey channel, Tensor tensor) {
        FrameKey frame = frame(unit, channel);
        return switch (direct.way(channel, tensor)) {
            case DIRECT -> progress(direct.offer(frame, tensor));
            case NOT_KNOWN -> Progress.WAITS_FOR_LINK;
            case DATA_PLANE ->
                    tensor.buffer().isCopied()
                            ? progress(endpoint.offer(frame, tensor.staging()))
                            : Progress.WAITS_FOR_LINK;
        };
    }

    private static Progress progress(OfferResult answer) {
        return switch (answer) {
            case OfferResult.Sent _ -> Progress.DONE;
            case OfferResult.NoCredit _ -> Progress.WAITS_FOR_CREDIT;
            case OfferResult.BackPressured _ -> Progress.WAITS_FOR_LINK;
            case OfferResult.Failed(String reason) -> throw linkFailed(reason);
        };
    }

    /** Takes a unit's tensor out of its channel; null while it has not arrived. */
    HeldTensor.@Nullable Received receive(WorkUnit unit, ChannelKey channel) {
        FrameKey key = frame(unit, channel);
        int copied = direct.take(key);
        if (copied >= 0) {
            return received(unit, channel, copied);
        }
        int slot = endpoint.take(key);
        if (slot < 0) {
            return null;
        }
        HeldTensor.Received received = received(unit, channel, slot);
        Tensor tensor = received.tensor();
        if (!broughtEarly.remove(key)) {
            tensor.buffer().beginToDevice(tensor.bytes());
        }
        tensor.buffer().kernelsAwaitCopy();
        return received;
    }

    /**
     * Whether a tensor has arrived and its copy to the device is not complete, which this begins
     * unless that was done before: a slot whose tensor is decoded must not be read by a copy any
     * more when it is released.
     */
    boolean isOnItsWayToTheDevice(WorkUnit unit, ChannelKey channel) {
        if (direct.bring(channel)) {
            return false;
        }
        bring(unit, channel);
        int slot = endpoint.arrived(frame(unit, channel));
        return slot >= 0 && !buffers.slot(channel, slot, unit).buffer().isCopied();
    }

    private HeldTensor.Received received(WorkUnit unit, ChannelKey channel, int slot) {
        return new HeldTensor.Received(buffers.slot(channel, slot, unit), channel, slot);
    }

    /** Gives the slot of a received tensor back to its channel. */
    void release(HeldTensor.Received received) {
        ChannelKey channel = received.channel();
        if (direct.bring(channel)) {
            direct.release(channel, received.slot());
        } else {
            endpoint.release(channel, received.slot());
        }
    }

    /**
     * Starts the copy to the device for the receives after this position whose tensors have already
     * arrived, so that the copy overlaps the computation at the position.
     */
    void bringWhatIsHere(int position) {
        List<Op> ops = program.ops();
        int end = Math.min(position + 1 + LOOK_AHEAD, ops.size());
        for (int next = position + 1; next < end; next++) {
            switch (ops.get(next)) {
                case Op.ReceiveActivation(WorkUnit unit) ->
                        bring(unit, topology.activationInto(unit));
                case Op.ReceiveGradient(WorkUnit unit) -> bring(unit, topology.gradientInto(unit));
                case Op.Compute _,
                        Op.Overlapped _,
                        Op.SendActivation _,
                        Op.SendGradient _,
                        Op.ActivationOp _,
                        Op.ParameterOp _,
                        Op.ReduceGradients _ -> {}
            }
        }
    }

    private void bring(WorkUnit unit, ChannelKey channel) {
        FrameKey key = frame(unit, channel);
        int slot = endpoint.arrived(key);
        if (slot >= 0 && broughtEarly.add(key)) {
            Tensor tensor = buffers.slot(channel, slot, unit);
            tensor.buffer().beginToDevice(tensor.bytes());
        }
    }

    private FrameKey frame(WorkUnit unit, ChannelKey channel) {
        return new FrameKey(channel, pass, unit.microBatch(), unit.slice());
    }
}
