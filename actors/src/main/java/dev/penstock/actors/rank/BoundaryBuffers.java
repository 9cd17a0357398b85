package dev.penstock.actors.rank;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.FrameKind;
import dev.penstock.actors.dataplane.Inbound;
import dev.penstock.actors.dataplane.Outbound;
import dev.penstock.actors.dataplane.direct.DirectTransfers;
import dev.penstock.actors.rank.BufferNeeds.Use;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.BiFunction;

/**
 * All boundary tensors of a rank, allocated once: receive slots (for the tensors that the program
 * holds and those that the credits of the channel allow in flight) and pools of outputs and input
 * gradients. Where the data plane keeps sent tensors until they are verified, a pool is larger by
 * the credits of its channel, so it is never empty when the program takes a tensor.
 */
final class BoundaryBuffers {
    private final int rank;
    private final Map<Integer, StageProgram> programs;
    private final int slices;
    private final Map<ChannelKey, List<DeviceBuffer>> slots = new HashMap<>();
    private final Map<Integer, Deque<DeviceBuffer>> outputs = new HashMap<>();
    private final Map<Integer, Deque<DeviceBuffer>> inputGradients = new HashMap<>();
    private final Map<ChannelKey, SentTensors> sent = new HashMap<>();
    private final List<Inbound> inbound = new ArrayList<>();
    private final List<Outbound> outbound = new ArrayList<>();

    /**
     * Allocates everything.
     *
     * @param keepsSent whether the data plane reads sent tensors until they are verified
     */
    BoundaryBuffers(
            int rank,
            RunPlan plan,
            Map<Integer, StageProgram> programs,
            DeviceScope scope,
            boolean keepsSent) {
        this.rank = rank;
        this.programs = programs;
        this.slices = plan.training().shape().slices();
        var needs = BufferNeeds.of(rank, plan);
        var topology = new Topology(plan.training());
        for (StageProgram program : programs.values()) {
            int stage = program.stage();
            int outputCount = needs.peak(stage, Use.OUTPUT);
            int gradientCount = needs.peak(stage, Use.INPUT_GRADIENT);
            boolean takesFrames = stage > 0 && !topology.isLocal(stage - 1, stage);
            boolean sendsFrames = !topology.isLast(stage) && !topology.isLocal(stage, stage + 1);
            if (takesFrames) {
                receive(scope, plan, activation(stage), needs, Use.INPUT);
            }
            if (takesFrames && topology.passesGradient(stage)) {
                gradientCount += send(plan, gradient(stage - 1), keepsSent);
            }
            if (sendsFrames && topology.hasBackward(stage)) {
                receive(scope, plan, gradient(stage), needs, Use.OUTPUT_GRADIENT);
            }
            if (sendsFrames) {
                outputCount += send(plan, activation(stage + 1), keepsSent);
            }
            outputs.put(
                    stage, pool(allocation(scope, sendsFrames), "output", program, outputCount));
            inputGradients.put(
                    stage,
                    pool(allocation(scope, takesFrames), "input gradient", program, gradientCount));
        }
    }

    /** Returns the channel that brings a stage its input. */
    static ChannelKey activation(int stage) {
        return new ChannelKey(FrameKind.ACTIVATION, stage - 1, stage);
    }

    /** Returns the channel that brings a stage the gradient of its output. */
    static ChannelKey gradient(int stage) {
        return new ChannelKey(FrameKind.GRADIENT, stage + 1, stage);
    }

    List<Inbound> inbound() {
        return inbound;
    }

    List<Outbound> outbound() {
        return outbound;
    }

    /** Opens the ends of all channels whose tensors may bypass the host. */
    void open(DirectTransfers direct) {
        inbound.forEach(channel -> direct.receive(channel, known(slots, channel.channel())));
        outbound.forEach(direct::send);
    }

    /** Returns a slot as the boundary tensor of this unit. */
    Tensor slot(ChannelKey channel, int slot, WorkUnit unit) {
        return view(channel.stage(), known(slots, channel).get(slot), unit);
    }

    Tensor takeOutput(WorkUnit unit) {
        return view(unit.stage(), known(outputs, unit.stage()).pop(), unit);
    }

    void returnOutput(int stage, Tensor tensor) {
        known(outputs, stage).push(tensor.buffer());
    }

    /** Records that the output was sent; it returns to its pool once the receiver has it intact. */
    void sentOutput(Endpoint endpoint, int stage, Tensor tensor) {
        SentTensors channel = known(sent, activation(stage + 1));
        channel.add(tensor.buffer());
        channel.reclaim(endpoint, known(outputs, stage));
    }

    /** Same as {@link #sentOutput}. */
    void sentInputGradient(Endpoint endpoint, int stage, Tensor tensor) {
        SentTensors channel = known(sent, gradient(stage - 1));
        channel.add(tensor.buffer());
        channel.reclaim(endpoint, known(inputGradients, stage));
    }

    /** Takes back what the receivers of a stage's tensors have verified by now. */
    void reclaim(Endpoint endpoint, int stage) {
        SentTensors forward = sent.get(activation(stage + 1));
        if (forward != null) {
            forward.reclaim(endpoint, known(outputs, stage));
        }
        SentTensors backward = sent.get(gradient(stage - 1));
        if (backward != null) {
            backward.reclaim(endpoint, known(inputGradients, stage));
        }
    }

    Tensor takeInputGradient(WorkUnit unit) {
        return view(unit.stage(), known(inputGradients, unit.stage()).pop(), unit);
    }

    void returnInputGradient(int stage, Tensor tensor) {
        known(inputGradients, stage).push(tensor.buffer());
    }

    private Tensor view(int stage, DeviceBuffer buffer, WorkUnit unit) {
        StageProgram program = known(programs, stage);
        return Tensor.of(buffer, DType.F32, program.boundaryRows(unit), program.boundaryColumns());
    }

    private void receive(
            DeviceScope scope, RunPlan plan, ChannelKey channel, BufferNeeds needs, Use use) {
        int credits = credits(plan, channel);
        StageProgram program = known(programs, channel.stage());
        int count = needs.slots(channel.stage(), use, credits);
        var buffers =
                List.copyOf(pool(scope::allocateStaged, "slot of " + channel, program, count));
        slots.put(channel, buffers);
        int from = plan.holderOf(channel.fromStage(), rank);
        inbound.add(
                new Inbound(
                        channel,
                        from,
                        credits,
                        buffers.stream().map(DeviceBuffer::staging).toList()));
    }

    /** Returns how many of the channel's tensors are kept at most. */
    private int send(RunPlan plan, ChannelKey channel, boolean keepsSent) {
        int to = plan.holderOf(channel.stage(), rank);
        int credits = credits(plan, channel);
        outbound.add(new Outbound(channel, to, credits));
        sent.put(channel, new SentTensors(channel));
        return keepsSent ? credits : 0;
    }

    private static int credits(RunPlan plan, ChannelKey channel) {
        Integer credits = plan.inFlight().get(channel);
        if (credits == null) {
            throw new IllegalArgumentException(
                    "the plan of run %s gives no in-flight count for %s"
                            .formatted(plan.runId(), channel));
        }
        return credits;
    }

    /** Returns how to allocate: the tensors that links carry are staged. */
    private static BiFunction<String, Long, DeviceBuffer> allocation(
            DeviceScope scope, boolean crosses) {
        return crosses ? scope::allocateStaged : scope::allocate;
    }

    private Deque<DeviceBuffer> pool(
            BiFunction<String, Long, DeviceBuffer> allocation,
            String use,
            StageProgram program,
            int count) {
        int rows = 0;
        for (int slice = 0; slice < slices; slice++) {
            rows = Math.max(rows, program.boundaryRows(slice));
        }
        long bytes = (long) rows * program.boundaryColumns() * DType.F32.bytes();
        var pool = new ArrayDeque<DeviceBuffer>();
        for (int i = 0; i < count; i++) {
            pool.add(allocation.apply("stage %d %s %d".formatted(program.stage(), use, i), bytes));
        }
        return pool;
    }

    private static <K, V> V known(Map<K, V> map, K key) {
        return Objects.requireNonNull(map.get(key), () -> "this rank has no buffers for " + key);
    }
}
