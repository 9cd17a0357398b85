package dev.penstock.actors.rank;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Knows where each boundary tensor of a rank is between the op that makes or receives it and the op
 * that needs it last. A tensor for a stage of the same rank is handed over without a copy.
 *
 * <pre>
 *   RECV_F &rarr; inputs          &rarr; F .. B     released by the backward (an evaluation: the forward)
 *   F      &rarr; outputs         &rarr; SEND_F     or, on one rank, the next stage's inputs
 *   RECV_B &rarr; outputGradients &rarr; B          released by the backward
 *   B      &rarr; inputGradients  &rarr; SEND_B     or, on one rank, the outputGradients of the stage before
 * </pre>
 *
 * <p>The rank's thread only.
 */
final class BoundaryTensors {
    private final Topology topology;
    private final BoundaryBuffers buffers;
    private final Endpoint endpoint;
    private final BoundaryLinks links;
    private final Map<WorkUnit, HeldTensor> inputs = new HashMap<>();
    private final Map<WorkUnit, HeldTensor> outputGradients = new HashMap<>();
    private final Map<WorkUnit, Tensor> outputs = new HashMap<>();
    private final Map<WorkUnit, Tensor> inputGradients = new HashMap<>();
    private long activationBytes;
    private long gradientBytes;

    /** How many channels of the send under way have its tensor. */
    private int told;

    BoundaryTensors(
            Topology topology, BoundaryBuffers buffers, Endpoint endpoint, BoundaryLinks links) {
        this.topology = topology;
        this.buffers = buffers;
        this.endpoint = endpoint;
        this.links = links;
    }

    void begin() {
        told = 0;
        activationBytes = 0;
        gradientBytes = 0;
    }

    /** Returns the bytes of activations sent to other ranks in the pass. */
    long activationBytes() {
        return activationBytes;
    }

    /** Returns the bytes of gradients sent to other ranks in the pass. */
    long gradientBytes() {
        return gradientBytes;
    }

    // ---- forward --------------------------------------------------------------------------------

    Progress receiveInput(WorkUnit unit) {
        return receive(unit, topology.activationInto(unit), inputs);
    }

    /** Returns the unit's input, or null on the first stage. */
    @Nullable Tensor input(WorkUnit unit) {
        return tensor(inputs, unit);
    }

    /** Takes memory for the output of a forward; null on the last stage. */
    @Nullable Tensor takeOutput(WorkUnit unit) {
        int stage = unit.stage();
        buffers.reclaim(endpoint);
        return topology.isLast(stage) ? null : buffers.takeOutput(unit);
    }

    /**
     * Hands a computed output to the next stage if that lives here, or else keeps it for its send.
     */
    void computedOutput(WorkUnit unit, Tensor output) {
        int next = unit.stage() + 1;
        if (topology.isHandedOutput(unit)) {
            inputs.put(unit.onStage(next), new HeldTensor.HandedOver(output));
        } else {
            outputs.put(unit, toSend(topology.activationOutOf(unit), unit, output));
        }
    }

    Progress sendOutput(WorkUnit unit) {
        List<ChannelKey> channels = topology.activationOutOf(unit);
        Tensor output = computed(outputs, unit);
        Progress progress = offer(unit, channels, output);
        if (progress == Progress.DONE) {
            activationBytes += channels.size() * output.bytes();
            if (channels.isEmpty()) {
                buffers.returnOutput(unit.stage(), output);
            }
            outputs.remove(unit);
        }
        return progress;
    }

    void releaseInput(WorkUnit unit) {
        switch (inputs.remove(unit)) {
            case null -> {}
            case HeldTensor.HandedOver(Tensor tensor) ->
                    buffers.returnOutput(unit.stage() - 1, tensor);
            case HeldTensor.Decoded(Tensor tensor, ChannelKey channel) ->
                    buffers.returnDecoded(channel, tensor);
            case HeldTensor.Received received -> links.release(received);
        }
    }

    // ---- backward -------------------------------------------------------------------------------

    Progress receiveOutputGradient(WorkUnit unit) {
        return receive(unit, topology.gradientInto(unit), outputGradients);
    }

    /** Returns the gradient of the unit's output, or null on the last stage. */
    @Nullable Tensor outputGradient(WorkUnit unit) {
        return tensor(outputGradients, unit);
    }

    /** Takes memory for the input gradient of a backward; null on the lowest stage that has any. */
    @Nullable Tensor takeInputGradient(WorkUnit unit) {
        int stage = unit.stage();
        buffers.reclaim(endpoint);
        return topology.passesGradient(stage) ? buffers.takeInputGradient(unit) : null;
    }

    /** Hands a gradient to the previous stage if that lives here, or else keeps it for its send. */
    void computedInputGradient(WorkUnit unit, Tensor inputGradient) {
        int before = unit.stage() - 1;
        if (topology.isHandedInput(unit)) {
            outputGradients.put(unit.onStage(before), new HeldTensor.HandedOver(inputGradient));
        } else {
            List<ChannelKey> channels = topology.gradientOutOf(unit);
            inputGradients.put(unit, toSend(channels, unit, inputGradient));
        }
    }

    Progress sendInputGradient(WorkUnit unit) {
        List<ChannelKey> channels = topology.gradientOutOf(unit);
        Tensor gradient = computed(inputGradients, unit);
        Progress progress = offer(unit, channels, gradient);
        if (progress == Progress.DONE) {
            gradientBytes += channels.size() * gradient.bytes();
            if (channels.isEmpty()) {
                buffers.returnInputGradient(unit.stage(), gradient);
            }
            inputGradients.remove(unit);
        }
        return progress;
    }

    void releaseOutputGradient(WorkUnit unit) {
        switch (outputGradients.remove(unit)) {
            case null -> {}
            case HeldTensor.HandedOver(Tensor tensor) ->
                    buffers.returnInputGradient(unit.stage() + 1, tensor);
            case HeldTensor.Decoded(Tensor tensor, ChannelKey channel) ->
                    buffers.returnDecoded(channel, tensor);
            case HeldTensor.Received received -> links.release(received);
        }
    }

    // ---- both -----------------------------------------------------------------------------------

    private Progress receive(WorkUnit unit, ChannelKey channel, Map<WorkUnit, HeldTensor> into) {
        if (buffers.isCoded(channel) && links.isOnItsWayToTheDevice(unit, channel)) {
            return Progress.WAITS_FOR_LINK;
        }
        HeldTensor.Received received = links.receive(unit, channel);
        if (received == null) {
            return Progress.WAITS_FOR_FRAME;
        }
        into.put(unit, buffers.isCoded(channel) ? decoded(unit, received) : received);
        return Progress.DONE;
    }

    private HeldTensor decoded(WorkUnit unit, HeldTensor.Received received) {
        Tensor tensor = buffers.decode(received.channel(), unit, received.tensor());
        links.release(received);
        return new HeldTensor.Decoded(tensor, received.channel());
    }

    /**
     * Returns what travels of a computed tensor, whose memory is free if that is something else.
     */
    private Tensor toSend(List<ChannelKey> channels, WorkUnit unit, Tensor computed) {
        if (channels.isEmpty()) {
            return computed;
        }
        ChannelKey channel = channels.getFirst(); // all have the same codec
        Tensor travelling = buffers.encode(channel, unit, computed);
        if (buffers.isCoded(channel)) {
            switch (channel.kind()) {
                case ACTIVATION -> buffers.returnOutput(unit.stage(), computed);
                case GRADIENT -> buffers.returnInputGradient(unit.stage(), computed);
                case SHARED_GRADIENT, MIRROR, COLLECTIVE ->
                        throw new IllegalArgumentException(channel + " has no boundary tensors");
            }
        }
        links.prepare(channels, travelling);
        return travelling;
    }

    /** Sends a tensor on one channel after the other, or returns what is in its way. */
    private Progress offer(WorkUnit unit, List<ChannelKey> channels, Tensor tensor) {
        for (; told < channels.size(); told++) {
            Progress progress = links.offer(unit, channels.get(told), tensor);
            if (progress != Progress.DONE) {
                return progress;
            }
        }
        told = 0;
        buffers.lend(tensor, channels.size());
        channels.forEach(channel -> sent(channel, tensor));
        return Progress.DONE;
    }

    private void sent(ChannelKey channel, Tensor tensor) {
        if (links.isDirect(channel, tensor)) {
            buffers.returnSent(channel, tensor);
        } else {
            buffers.sent(endpoint, channel, tensor);
        }
    }

    private static @Nullable Tensor tensor(Map<WorkUnit, HeldTensor> from, WorkUnit unit) {
        HeldTensor held = from.get(unit);
        return held == null ? null : held.tensor();
    }

    private static Tensor computed(Map<WorkUnit, Tensor> made, WorkUnit unit) {
        Tensor tensor = made.get(unit);
        if (tensor == null) {
            throw new IllegalStateException("nothing was computed to send for " + unit);
        }
        return tensor;
    }
}
