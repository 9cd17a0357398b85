package dev.penstock.actors.rank;

import dev.penstock.actors.dataplane.ChannelCodecs;
import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.Inbound;
import dev.penstock.actors.dataplane.Outbound;
import dev.penstock.actors.dataplane.direct.DirectTransfers;
import dev.penstock.actors.rank.BufferNeeds.Made;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.RowCodec;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.function.BiFunction;

/**
 * All boundary tensors of a rank, allocated once: receive slots (for the tensors that the program
 * holds and those that the credits of the channel allow in flight) and pools of outputs and input
 * gradients. Where the data plane keeps sent tensors until they are verified, a pool is larger by
 * the credits of its channel, so it is never empty when the program takes a tensor.
 *
 * <p>Of a channel whose tensors travel coded, slots and what is sent hold coded rows. All units
 * compute into the same tensor, whose coded form waits for its send; what came is decoded at once,
 * into memory for as many tensors as the program holds, and its slot is free again.
 *
 * <pre>
 *   F &rarr; output &rarr; coded &rarr; SEND_F        RECV_F &rarr; slot &rarr; input &rarr; F .. B
 * </pre>
 */
final class BoundaryBuffers {
    private final int rank;
    private final Map<Integer, StageProgram> programs;
    private final int slices;
    private final Map<ChannelKey, List<DeviceBuffer>> slots = new HashMap<>();
    private final Map<Integer, Deque<DeviceBuffer>> outputs = new HashMap<>();
    private final Map<Integer, Deque<DeviceBuffer>> inputGradients = new HashMap<>();
    private final Map<ChannelKey, SentTensors> sent = new HashMap<>();

    /** Where what a channel has sent returns to: where it was taken from. */
    private final Map<ChannelKey, Deque<DeviceBuffer>> sendable = new HashMap<>();

    /** Tensors that several channels have sent: how many have not given them back. */
    private final IdentityHashMap<DeviceBuffer, Integer> lent = new IdentityHashMap<>();

    private final Map<ChannelKey, Deque<DeviceBuffer>> decoded = new HashMap<>();
    private final ChannelCodecs codecs;
    private final Kernels kernels;
    private final CodingState coding;
    private final List<Inbound> inbound = new ArrayList<>();
    private final List<Outbound> outbound = new ArrayList<>();

    /**
     * Allocates everything.
     *
     * @param coding what this rank's ends of links keep from step to step
     * @param keepsSent whether the data plane reads sent tensors until they are verified
     */
    BoundaryBuffers(
            int rank,
            RunPlan plan,
            Map<Integer, StageProgram> programs,
            DeviceScope scope,
            Kernels kernels,
            CodingState coding,
            boolean keepsSent) {
        this.rank = rank;
        this.programs = programs;
        this.slices = plan.training().shape().slices();
        this.codecs = plan.codecs();
        this.kernels = kernels;
        this.coding = coding;
        var needs = BufferNeeds.of(rank, plan);
        needs.inbound().forEach(channel -> receive(scope, plan, channel, needs));
        for (Made made : Made.values()) {
            Deque<DeviceBuffer> inHouse = inHouse(scope, needs, made);
            for (StageProgram program : programs.values()) {
                Deque<DeviceBuffer> pool =
                        needs.outbound(program.stage(), made).isEmpty()
                                ? inHouse
                                : sent(scope, plan, program, needs, made, keepsSent);
                (made == Made.OUTPUT ? outputs : inputGradients).put(program.stage(), pool);
            }
        }
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

    /** Returns a slot as the boundary tensor of this unit, or as its coded rows. */
    Tensor slot(ChannelKey channel, int slot, WorkUnit unit) {
        DeviceBuffer buffer = known(slots, channel).get(slot);
        return codecs.of(channel)
                .map(codec -> coded(channel.stage(), buffer, unit, codec))
                .orElseGet(() -> view(channel.stage(), buffer, unit));
    }

    Tensor takeOutput(WorkUnit unit) {
        return view(unit.stage(), take(known(outputs, unit.stage()), "outputs"), unit);
    }

    void returnOutput(int stage, Tensor tensor) {
        known(outputs, stage).push(tensor.buffer());
    }

    Tensor takeInputGradient(WorkUnit unit) {
        return view(
                unit.stage(), take(known(inputGradients, unit.stage()), "input gradients"), unit);
    }

    void returnInputGradient(int stage, Tensor tensor) {
        known(inputGradients, stage).push(tensor.buffer());
    }

    // ---- coded tensors --------------------------------------------------------------------------

    boolean isCoded(ChannelKey channel) {
        return codecs.of(channel).isPresent();
    }

    /**
     * Returns what is sent of a computed tensor: its coded rows where its channel has a codec, and
     * then the tensor may be overwritten.
     */
    Tensor encode(ChannelKey channel, WorkUnit unit, Tensor computed) {
        Optional<RowCodec> codec = codecs.of(channel);
        if (codec.isEmpty()) {
            return computed;
        }
        DeviceBuffer buffer = take(known(sendable, channel), "coded tensors");
        Tensor coded = coded(unit.stage(), buffer, unit, codec.get());
        boolean feedsBack = codecs.feedsBack(channel);
        boolean delta = codecs.carriesDeltas(channel);
        if (feedsBack) {
            coding.losses().addTo(computed, unit, kernels);
        }
        if (delta) {
            coding.deltas().sent(unit).subtractFrom(computed, unit);
        }
        kernels.encode(codec.get(), computed, coded);
        if (feedsBack || delta) {
            kernels.decode(codec.get(), coded, computed);
        }
        if (feedsBack) {
            coding.losses().take(computed, unit, kernels);
        }
        if (delta) {
            coding.deltas().sent(unit).addTo(computed, unit);
        }
        return coded;
    }

    /** Returns what came in a slot of a coded channel; its slot may be released. */
    Tensor decode(ChannelKey channel, WorkUnit unit, Tensor coded) {
        Tensor tensor = view(channel.stage(), known(decoded, channel).pop(), unit);
        kernels.decode(codecs.of(channel).orElseThrow(), coded, tensor);
        if (codecs.carriesDeltas(channel)) {
            coding.deltas().received(unit).addTo(tensor, unit);
        }
        return tensor;
    }

    void returnDecoded(ChannelKey channel, Tensor tensor) {
        known(decoded, channel).push(tensor.buffer());
    }

    // ---- sent tensors ---------------------------------------------------------------------------

    /** A tensor was sent on so many channels, each of which gives it back. */
    void lend(Tensor tensor, int channels) {
        if (channels > 1) {
            lent.put(tensor.buffer(), channels);
        }
    }

    /** Takes back what was sent past the data plane. */
    void returnSent(ChannelKey channel, Tensor tensor) {
        giveBack(channel, tensor.buffer());
    }

    /** Records that a tensor was sent; it returns to its pool once the receiver has it intact. */
    void sent(Endpoint endpoint, ChannelKey channel, Tensor tensor) {
        SentTensors sentOnes = known(sent, channel);
        sentOnes.add(tensor.buffer());
        sentOnes.reclaim(endpoint, buffer -> giveBack(channel, buffer));
    }

    /** Takes back what the receivers of this rank's tensors have verified by now. */
    void reclaim(Endpoint endpoint) {
        sent.forEach(
                (channel, tensors) ->
                        tensors.reclaim(endpoint, buffer -> giveBack(channel, buffer)));
    }

    private void giveBack(ChannelKey channel, DeviceBuffer buffer) {
        Integer left = lent.computeIfPresent(buffer, (_, count) -> count - 1);
        if (left == null || left == 0) {
            lent.remove(buffer);
            known(sendable, channel).push(buffer);
        }
    }

    // ---- allocation -----------------------------------------------------------------------------

    private Tensor view(int stage, DeviceBuffer buffer, WorkUnit unit) {
        StageProgram program = known(programs, stage);
        return Tensor.of(buffer, DType.F32, program.boundaryRows(unit), program.boundaryColumns());
    }

    private Tensor coded(int stage, DeviceBuffer buffer, WorkUnit unit, RowCodec codec) {
        StageProgram program = known(programs, stage);
        int words = codec.words(program.boundaryColumns());
        return Tensor.of(buffer, DType.I32, program.boundaryRows(unit), words);
    }

    private void receive(DeviceScope scope, RunPlan plan, ChannelKey channel, BufferNeeds needs) {
        int credits = credits(plan, channel);
        StageProgram program = known(programs, channel.stage());
        boolean coded = isCoded(channel);
        int count = coded ? credits : needs.slots(channel, credits);
        if (coded) {
            int held = needs.peak(channel);
            decoded.put(channel, pool(scope::allocate, "decoded of " + channel, program, held));
        }
        var buffers =
                List.copyOf(
                        pool(
                                scope::allocateStaged,
                                "slot of " + channel,
                                program,
                                count,
                                bytes(channel, program)));
        slots.put(channel, buffers);
        inbound.add(
                new Inbound(
                        channel,
                        plan.senderTo(rank, channel),
                        credits,
                        buffers.stream().map(DeviceBuffer::staging).toList()));
    }

    /** Returns the memory of what stages make for each other, of which they send nothing. */
    private Deque<DeviceBuffer> inHouse(DeviceScope scope, BufferNeeds needs, Made made) {
        int count = needs.peakInHouse(programs.keySet(), made);
        StageProgram any = programs.values().iterator().next(); // all are as large
        return pool(scope::allocate, use(made), any, count);
    }

    private static String use(Made made) {
        return switch (made) {
            case OUTPUT -> "output";
            case INPUT_GRADIENT -> "input gradient";
        };
    }

    /**
     * Returns the memory that computations of a stage write into which sends some of what it makes;
     * what waits for its send may be some of it.
     */
    private Deque<DeviceBuffer> sent(
            DeviceScope scope,
            RunPlan plan,
            StageProgram program,
            BufferNeeds needs,
            Made made,
            boolean keepsSent) {
        int stage = program.stage();
        List<ChannelKey> channels = needs.outbound(stage, made);
        int kept = 0;
        for (ChannelKey channel : channels) {
            int credits = credits(plan, channel);
            outbound.add(new Outbound(channel, plan.receiverFrom(rank, channel), credits));
            sent.put(channel, new SentTensors(channel));
            kept += keepsSent ? credits : 0;
        }
        ChannelKey any = channels.getFirst(); // all have the same codec
        boolean coded = isCoded(any);
        int count = kept + (coded ? needs.peakSent(stage, made) : needs.peak(stage, made));
        Deque<DeviceBuffer> sending =
                pool(scope::allocateStaged, use(made), program, count, bytes(any, program));
        channels.forEach(channel -> sendable.put(channel, sending));
        return coded
                ? pool(scope::allocate, use(made), program, needs.peakHandedOver(stage, made) + 1)
                : sending;
    }

    private static int credits(RunPlan plan, ChannelKey channel) {
        int credits = plan.credits(channel);
        if (credits == 0) {
            throw new IllegalArgumentException(
                    "the plan of run %s gives no in-flight count for %s"
                            .formatted(plan.runId(), channel));
        }
        return credits;
    }

    private Deque<DeviceBuffer> pool(
            BiFunction<String, Long, DeviceBuffer> allocation,
            String use,
            StageProgram program,
            int count) {
        long elements = (long) mostRows(program) * program.boundaryColumns();
        return pool(allocation, use, program, count, elements * DType.F32.bytes());
    }

    private static Deque<DeviceBuffer> pool(
            BiFunction<String, Long, DeviceBuffer> allocation,
            String use,
            StageProgram program,
            int count,
            long bytes) {
        var pool = new ArrayDeque<DeviceBuffer>();
        for (int i = 0; i < count; i++) {
            pool.add(allocation.apply("stage %d %s %d".formatted(program.stage(), use, i), bytes));
        }
        return pool;
    }

    private long bytes(ChannelKey channel, StageProgram program) {
        return codecs.bytes(channel, mostRows(program), program.boundaryColumns());
    }

    private int mostRows(StageProgram program) {
        int rows = 0;
        for (int slice = 0; slice < slices; slice++) {
            rows = Math.max(rows, program.boundaryRows(slice));
        }
        return rows;
    }

    /**
     * Takes from a pool that has room for all that the program holds and that links keep: if it is
     * empty, the links do not say any more what has arrived.
     */
    private static DeviceBuffer take(Deque<DeviceBuffer> pool, String what) {
        DeviceBuffer taken = pool.poll();
        if (taken == null) {
            throw BoundaryLinks.linkFailed("nothing is heard of %s that were sent".formatted(what));
        }
        return taken;
    }

    private static <K, V> V known(Map<K, V> map, K key) {
        return Objects.requireNonNull(map.get(key), () -> "this rank has no buffers for " + key);
    }
}
