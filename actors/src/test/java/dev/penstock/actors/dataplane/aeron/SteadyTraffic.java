package dev.penstock.actors.dataplane.aeron;

import static dev.penstock.actors.dataplane.aeron.TwoRanks.BACKWARD;
import static dev.penstock.actors.dataplane.aeron.TwoRanks.FORWARD;
import static dev.penstock.actors.dataplane.aeron.TwoRanks.forward;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;

import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.OfferResult;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.locks.LockSupport;

/**
 * A pipeline's traffic: rank 0 sends tensors forward, rank 1 sends each back, and both compare
 * every byte. A tensor's memory is overwritten as soon as it counts as verified, so that one sent
 * again too late would show.
 */
final class SteadyTraffic {
    static final int CREDITS = 3;

    private final TwoRanks ranks;
    private final int bytes;
    private final long seed;
    private final List<MemorySegment> outputs = new ArrayList<>();
    private final List<MemorySegment> echoes = new ArrayList<>();
    private final MemorySegment expected;
    private int echoSlot = -1;

    SteadyTraffic(TwoRanks ranks, int bytes, long seed) {
        this.ranks = ranks;
        this.bytes = bytes;
        this.seed = seed;
        this.expected = ranks.arena.allocate(bytes, 64);
        for (int i = 0; i <= CREDITS; i++) {
            outputs.add(ranks.arena.allocate(bytes, 64));
            echoes.add(ranks.arena.allocate(bytes, 64));
        }
    }

    /** Sends so many tensors there and back, or fails when the time is over. */
    void run(int tensors, long deadlineNanos) {
        long start = System.nanoTime();
        int sent = 0;
        int echoed = 0;
        int back = 0;
        while (back < tensors) {
            int before = sent + echoed + back;
            sent += sent < tensors && send(ranks.sender, forward(sent), outputs, sent) ? 1 : 0;
            echoed += echo(echoed) ? 1 : 0;
            back += takeBack(back) ? 1 : 0;
            if (System.nanoTime() - start > deadlineNanos || broken()) {
                fail(
                        "seed %d: %d sent, %d echoed, %d back%n%s%n%s%n%s%s"
                                .formatted(
                                        seed,
                                        sent,
                                        echoed,
                                        back,
                                        ranks.sender.describe(),
                                        ranks.receiver.describe(),
                                        ranks.heardBySender.failures,
                                        ranks.heardByReceiver.failures));
            }
            if (before == sent + echoed + back) {
                LockSupport.parkNanos(20_000);
            }
        }
    }

    private boolean broken() {
        return !ranks.heardBySender.failures.isEmpty() || !ranks.heardByReceiver.failures.isEmpty();
    }

    /** Fills memory that is verified with the next tensor and offers it. */
    private boolean send(Endpoint endpoint, FrameKey key, List<MemorySegment> pool, int number) {
        if (number - endpoint.verified(key.channel()) >= pool.size()) {
            return false;
        }
        MemorySegment tensor = pool.get(number % pool.size());
        if (tensor.get(ValueLayout.JAVA_INT_UNALIGNED, 0) != marker(key)) {
            fill(tensor, key);
        }
        return endpoint.offer(key, tensor).equals(OfferResult.SENT);
    }

    private boolean echo(int number) {
        FrameKey back = new FrameKey(BACKWARD, 1, number, 0);
        if (number - ranks.receiver.verified(BACKWARD) >= echoes.size()) {
            return false;
        }
        if (echoSlot < 0) {
            echoSlot = ranks.receiver.take(forward(number));
        }
        if (echoSlot < 0) {
            return false;
        }
        check(ranks.slots.get(echoSlot), forward(number));
        if (!send(ranks.receiver, back, echoes, number)) {
            return false;
        }
        ranks.receiver.release(FORWARD, echoSlot);
        echoSlot = -1;
        return true;
    }

    private boolean takeBack(int number) {
        FrameKey key = new FrameKey(BACKWARD, 1, number, 0);
        int slot = ranks.sender.take(key);
        if (slot < 0) {
            return false;
        }
        check(ranks.backSlots.get(slot), key);
        ranks.sender.release(BACKWARD, slot);
        return true;
    }

    private void check(MemorySegment slot, FrameKey key) {
        fill(expected, key);
        assertThat(slot.mismatch(expected)).as("seed %d, tensor %s", seed, key).isEqualTo(-1);
    }

    private void fill(MemorySegment tensor, FrameKey key) {
        SplittableRandom random = new SplittableRandom(seed * 31 + marker(key));
        for (long at = 4; at + 8 <= bytes; at += 8) {
            tensor.set(ValueLayout.JAVA_LONG_UNALIGNED, at, random.nextLong());
        }
        tensor.set(ValueLayout.JAVA_INT_UNALIGNED, 0, marker(key));
    }

    private static int marker(FrameKey key) {
        return 1 + 2 * key.microBatch() + (key.channel().equals(FORWARD) ? 0 : 1);
    }
}
