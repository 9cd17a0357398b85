package dev.penstock.benchmarks;

import dev.penstock.actors.dataplane.aeron.UdpSettings;
import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Subscription;
import io.aeron.logbuffer.BufferClaim;
import io.aeron.logbuffer.FragmentHandler;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/**
 * The least work that can move a tensor over Aeron: one thread claims and copies chunks behind a
 * 16-byte header into the log, the other copies them out. There are no channels, credits, keys or
 * checks; both threads spin briefly, then yield.
 */
final class BareAeronLink implements AutoCloseable {
    private static final int HEADER_BYTES = 16;
    private static final int STREAM = 7;
    private static final int SPINS = 100;
    private static final MemorySegment EVERYTHING = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

    private final Aeron aeron;
    private final ExclusivePublication publication;
    private final Subscription subscription;
    private final BufferClaim claim = new BufferClaim();
    private final int chunkBytes;

    private BareAeronLink(Aeron aeron, Subscription subscription, String channel) {
        this.aeron = aeron;
        this.subscription = subscription;
        publication = aeron.addExclusivePublication(channel, STREAM);
        while (!publication.isConnected() || subscription.imageCount() == 0) {
            Thread.onSpinWait();
        }
        chunkBytes = publication.maxPayloadLength() - HEADER_BYTES;
    }

    /** Opens a link over shared memory. */
    static BareAeronLink ipc(Path directory, int termLength, int mtu) {
        Aeron aeron = connect(directory);
        return new BareAeronLink(
                aeron,
                aeron.addSubscription("aeron:ipc", STREAM),
                "aeron:ipc?term-length=%d|mtu=%d".formatted(termLength, mtu));
    }

    /** Opens a link over UDP on the loopback interface. */
    static BareAeronLink udp(Path directory, UdpSettings settings) {
        Aeron aeron = connect(directory);
        String socket = "so-sndbuf=%d|so-rcvbuf=%<d".formatted(settings.socketBufferBytes());
        Subscription subscription =
                aeron.addSubscription(
                        "aeron:udp?endpoint=127.0.0.1:0|rcv-wnd=%d|%s"
                                .formatted(settings.receiverWindowBytes(), socket),
                        STREAM);
        while (subscription.localSocketAddresses().isEmpty()) {
            Thread.onSpinWait();
        }
        return new BareAeronLink(
                aeron,
                subscription,
                "aeron:udp?endpoint=%s|term-length=%d|mtu=%d|%s"
                        .formatted(
                                subscription.localSocketAddresses().getFirst(),
                                settings.termLengthBytes(),
                                settings.mtuBytes(),
                                socket));
    }

    private static Aeron connect(Path directory) {
        return Aeron.connect(new Aeron.Context().aeronDirectoryName(directory.toString()));
    }

    /**
     * Sends the tensors round and round; returns the nanoseconds until the last one has arrived.
     */
    long transfer(List<MemorySegment> tensors, List<MemorySegment> slots, int count) {
        long bytes = (long) count * tensors.getFirst().byteSize();
        long start = System.nanoTime();
        CompletableFuture<Void> receiver =
                CompletableFuture.runAsync(
                        () -> receive(slots, bytes), task -> Thread.ofPlatform().start(task));
        for (int i = 0; i < count; i++) {
            send(tensors.get(i % tensors.size()), i % slots.size());
        }
        receiver.join();
        return System.nanoTime() - start;
    }

    private void send(MemorySegment tensor, int slot) {
        long position = 0;
        int idle = 0;
        while (position < tensor.byteSize()) {
            int chunk = (int) Math.min(chunkBytes, tensor.byteSize() - position);
            if (publication.tryClaim(HEADER_BYTES + chunk, claim) > 0) {
                claim.buffer().putLong(claim.offset(), slot);
                claim.buffer().putLong(claim.offset() + 8, position);
                long log = claim.buffer().addressOffset() + claim.offset() + HEADER_BYTES;
                MemorySegment.copy(tensor, position, EVERYTHING, log, chunk);
                claim.commit();
                position += chunk;
                idle = 0;
            } else {
                idle = idle(idle);
            }
        }
    }

    private static int idle(int rounds) {
        if (rounds < SPINS) {
            Thread.onSpinWait();
        } else {
            Thread.yield(); // the driver may need this core
        }
        return rounds + 1;
    }

    private void receive(List<MemorySegment> slots, long bytes) {
        long[] received = new long[1];
        FragmentHandler handler =
                (buffer, offset, length, _) -> {
                    MemorySegment slot = slots.get((int) buffer.getLong(offset));
                    long position = buffer.getLong(offset + 8);
                    long log = buffer.addressOffset() + offset + HEADER_BYTES;
                    int chunk = length - HEADER_BYTES;
                    MemorySegment.copy(EVERYTHING, log, slot, position, chunk);
                    received[0] += chunk;
                };
        int idle = 0;
        while (received[0] < bytes) {
            idle = subscription.poll(handler, 16) == 0 ? idle(idle) : 0;
        }
    }

    @Override
    public void close() {
        aeron.close();
    }
}
