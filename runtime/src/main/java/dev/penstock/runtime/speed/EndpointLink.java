package dev.penstock.runtime.speed;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameKind;
import dev.penstock.actors.dataplane.FrameListener;
import dev.penstock.actors.dataplane.Inbound;
import dev.penstock.actors.dataplane.OfferResult;
import dev.penstock.actors.dataplane.Outbound;
import dev.penstock.actors.dataplane.aeron.AeronDataPlane;
import dev.penstock.actors.dataplane.aeron.AeronSettings;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Rank 0 and rank 1 connected by the data plane, as in a pipeline of two stages in one process. */
public final class EndpointLink implements AutoCloseable {
    private static final ChannelKey FORWARD = new ChannelKey(FrameKind.ACTIVATION, 0, 1);
    private static final ChannelKey BACKWARD = new ChannelKey(FrameKind.GRADIENT, 1, 0);
    private static final int SPINS = 100;

    private final AeronDataPlane plane;
    private final Waiter senderWaits = new Waiter();
    private final Waiter receiverWaits = new Waiter();
    private final Endpoint sender;
    private final Endpoint receiver;

    /**
     * Opens both ends.
     *
     * @param slots the slots of rank 1; all but one are credits
     * @param backSlots the slots of rank 0
     */
    public EndpointLink(
            AeronSettings settings, List<MemorySegment> slots, List<MemorySegment> backSlots) {
        int credits = slots.size() - 1;
        plane = AeronDataPlane.start(settings);
        sender =
                plane.open(
                        0,
                        List.of(new Inbound(BACKWARD, 1, credits, backSlots)),
                        List.of(new Outbound(FORWARD, 1, credits)),
                        senderWaits);
        receiver =
                plane.open(
                        1,
                        List.of(new Inbound(FORWARD, 0, credits, slots)),
                        List.of(new Outbound(BACKWARD, 0, credits)),
                        receiverWaits);
    }

    /**
     * Sends the tensors round and round to the poller's thread, which takes and releases each as it
     * arrives: only the data plane, with as many threads as a bare loop. Returns the nanoseconds
     * until the last was taken.
     */
    public long stream(List<MemorySegment> tensors, int count, long step) {
        long start = System.nanoTime();
        CountDownLatch taken = new CountDownLatch(count);
        receiverWaits.onArrival =
                key -> {
                    receiver.release(FORWARD, receiver.take(key));
                    taken.countDown();
                };
        sendAll(tensors, count, step);
        try {
            taken.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        receiverWaits.onArrival = receiverWaits::tell;
        return System.nanoTime() - start;
    }

    /**
     * Sends the tensors round and round to a thread of rank 1, which waits for each as an actor
     * would. Returns the nanoseconds until the last was taken.
     */
    public long transfer(List<MemorySegment> tensors, int count, long step) {
        long start = System.nanoTime();
        CompletableFuture<Void> receiving =
                onThread(
                        () -> {
                            for (int i = 0; i < count; i++) {
                                take(receiver, receiverWaits, new FrameKey(FORWARD, step, i, 0));
                            }
                        });
        sendAll(tensors, count, step);
        receiving.join();
        return System.nanoTime() - start;
    }

    private void sendAll(List<MemorySegment> tensors, int count, long step) {
        for (int i = 0; i < count; i++) {
            FrameKey key = new FrameKey(FORWARD, step, i, 0);
            offer(sender, senderWaits, key, tensors.get(i % tensors.size()));
        }
    }

    /** Sends a tensor there and back; returns the nanoseconds of all trips. */
    public long roundTrips(MemorySegment tensor, int count, long step) {
        CompletableFuture<Void> echo =
                onThread(
                        () -> {
                            for (int i = 0; i < count; i++) {
                                take(receiver, receiverWaits, new FrameKey(FORWARD, step, i, 0));
                                FrameKey back = new FrameKey(BACKWARD, step, i, 0);
                                offer(receiver, receiverWaits, back, tensor);
                            }
                        });
        long start = System.nanoTime();
        for (int i = 0; i < count; i++) {
            offer(sender, senderWaits, new FrameKey(FORWARD, step, i, 0), tensor);
            take(sender, senderWaits, new FrameKey(BACKWARD, step, i, 0));
        }
        long nanos = System.nanoTime() - start;
        echo.join();
        return nanos;
    }

    private static CompletableFuture<Void> onThread(Runnable work) {
        return CompletableFuture.runAsync(work, task -> Thread.ofPlatform().start(task));
    }

    private static void offer(
            Endpoint endpoint, Waiter waiter, FrameKey key, MemorySegment tensor) {
        OfferResult result = endpoint.offer(key, tensor);
        while (!(result instanceof OfferResult.Sent)) {
            if (result instanceof OfferResult.Failed(String reason)) {
                throw new DataPlaneException(reason);
            }
            waiter.await(result instanceof OfferResult.BackPressured);
            result = endpoint.offer(key, tensor);
        }
    }

    private static void take(Endpoint endpoint, Waiter waiter, FrameKey key) {
        int slot = endpoint.take(key);
        while (slot < 0) {
            waiter.await(false);
            slot = endpoint.take(key);
        }
        endpoint.release(key.channel(), slot);
    }

    @Override
    public void close() {
        plane.close();
    }

    /** Lets a rank's thread wait for news as an actor would: it spins briefly, then parks. */
    private static final class Waiter implements FrameListener {
        private volatile Consumer<FrameKey> onArrival = this::tell;
        private volatile int news;
        private volatile @Nullable Thread parked;
        private int seen;

        void await(boolean forRoom) {
            for (int i = 0; i < SPINS && news == seen; i++) {
                Thread.onSpinWait();
            }
            if (news == seen && !forRoom) {
                parked = Thread.currentThread();
                if (news == seen) {
                    LockSupport.parkNanos(this, 1_000_000);
                }
                parked = null;
            }
            seen = news;
        }

        @SuppressWarnings("NonAtomicVolatileUpdate") // the poller is the only writer
        private void tell(Object arrived) {
            news++;
            Thread waiting = parked;
            if (waiting != null) {
                LockSupport.unpark(waiting);
            }
        }

        @Override
        public void onFrame(FrameKey key) {
            onArrival.accept(key);
        }

        @Override
        public void onCredit(ChannelKey channel) {
            tell(channel);
        }

        @Override
        public void onFailure(DataPlaneException failure) {
            tell(failure);
        }
    }
}
