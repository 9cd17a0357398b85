package dev.penstock.actors.dataplane.aeron;

import static org.awaitility.Awaitility.await;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameKind;
import dev.penstock.actors.dataplane.Inbound;
import dev.penstock.actors.dataplane.OfferResult;
import dev.penstock.actors.dataplane.Opening;
import dev.penstock.actors.dataplane.Outbound;
import dev.penstock.actors.dataplane.PeerAddress;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/** Rank 0 sends activations to rank 1, which sends gradients back; in one process. */
final class TwoRanks implements AutoCloseable {
    static final ChannelKey FORWARD = new ChannelKey(FrameKind.ACTIVATION, 0, 1);
    static final ChannelKey BACKWARD = new ChannelKey(FrameKind.GRADIENT, 1, 0);
    static final Duration DEADLINE = Duration.ofSeconds(20);

    final Arena arena = Arena.ofShared();
    final RecordingListener heardBySender = new RecordingListener();
    final RecordingListener heardByReceiver = new RecordingListener();
    final AeronDataPlane plane;
    private final AeronDataPlane other;
    final List<MemorySegment> slots;
    final List<MemorySegment> backSlots;
    final Endpoint sender;
    final Endpoint receiver;

    TwoRanks(AeronSettings settings, int credits, int slotCount, long slotBytes) {
        this(AeronDataPlane.start(settings), credits, slotCount, slotBytes);
    }

    private TwoRanks(AeronDataPlane both, int credits, int slotCount, long slotBytes) {
        this(both, Map.of(), both, Map.of(), credits, slotCount, slotBytes);
    }

    /** Each rank on a data plane of its own; both are closed with this. */
    TwoRanks(
            AeronDataPlane first,
            Map<Integer, PeerAddress> peersOfFirst,
            AeronDataPlane second,
            Map<Integer, PeerAddress> peersOfSecond,
            int credits,
            int slotCount,
            long slotBytes) {
        this(0, first, peersOfFirst, second, peersOfSecond, credits, slotCount, slotBytes);
    }

    /** In an epoch. */
    TwoRanks(
            int epoch,
            AeronDataPlane first,
            Map<Integer, PeerAddress> peersOfFirst,
            AeronDataPlane second,
            Map<Integer, PeerAddress> peersOfSecond,
            int credits,
            int slotCount,
            long slotBytes) {
        plane = first;
        other = second;
        slots = segments(slotCount, slotBytes);
        backSlots = segments(slotCount, slotBytes);
        sender =
                first.open(
                        new Opening(
                                0,
                                epoch,
                                List.of(new Inbound(BACKWARD, 1, credits, backSlots)),
                                List.of(new Outbound(FORWARD, 1, credits)),
                                peersOfFirst),
                        heardBySender);
        receiver =
                second.open(
                        new Opening(
                                1,
                                epoch,
                                List.of(new Inbound(FORWARD, 0, credits, slots)),
                                List.of(new Outbound(BACKWARD, 0, credits)),
                                peersOfSecond),
                        heardByReceiver);
    }

    static FrameKey forward(int microBatch) {
        return new FrameKey(FORWARD, 1, microBatch, 0);
    }

    /** A tensor of random bytes that depend on the seed. */
    MemorySegment tensor(long bytes, long seed) {
        MemorySegment tensor = arena.allocate(bytes, 64);
        SplittableRandom random = new SplittableRandom(seed);
        long at = 0;
        for (; at <= bytes - Long.BYTES; at += Long.BYTES) {
            tensor.set(ValueLayout.JAVA_LONG, at, random.nextLong());
        }
        for (; at < bytes; at++) {
            tensor.set(ValueLayout.JAVA_BYTE, at, (byte) random.nextInt());
        }
        return tensor;
    }

    /** Offers again until the answer is not back pressure. */
    static OfferResult offer(Endpoint endpoint, FrameKey key, MemorySegment tensor) {
        return await().atMost(DEADLINE)
                .pollDelay(Duration.ZERO)
                .pollInterval(Duration.ofMillis(1))
                .until(
                        () -> endpoint.offer(key, tensor),
                        result -> !(result instanceof OfferResult.BackPressured));
    }

    /** Takes the tensor as soon as it is there. */
    static int take(Endpoint endpoint, FrameKey key) {
        return await().atMost(DEADLINE)
                .pollDelay(Duration.ZERO)
                .pollInterval(Duration.ofMillis(1))
                .until(() -> endpoint.take(key), slot -> slot >= 0);
    }

    private List<MemorySegment> segments(int count, long bytes) {
        List<MemorySegment> segments = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            segments.add(arena.allocate(bytes, 64));
        }
        return segments;
    }

    @Override
    public void close() {
        plane.close();
        other.close();
        arena.close();
    }
}
