package dev.penstock.actors.dataplane.aeron;

import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.OfferResult;
import dev.penstock.actors.dataplane.TensorFrame;
import io.aeron.ExclusivePublication;
import io.aeron.Publication;
import io.aeron.logbuffer.BufferClaim;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The way from one rank to another: tensors, and the credits for tensors that come the other way.
 * The rank's thread sends; the poller helps out with credits that met a full log, hence a lock,
 * which the poller only tries.
 */
final class PeerLink {
    /** Attempts at a full log before the caller is told; each gives the core to the receiver. */
    private static final int PATIENCE = 20;

    private final AeronSettings settings;
    private final int fromRank;
    private final int toRank;
    private final ExclusivePublication publication;
    private final int longestChunk;
    private final Runnable wakeReceiver;

    private final ReentrantLock lock = new ReentrantLock();
    private final BufferClaim claim = new BufferClaim();
    private final TensorFrame frame = new TensorFrame();
    private final List<InboundChannel> credited = new ArrayList<>();

    PeerLink(
            AeronSettings settings,
            int fromRank,
            int toRank,
            ExclusivePublication publication,
            Runnable wakeReceiver) {
        this.settings = settings;
        this.fromRank = fromRank;
        this.toRank = toRank;
        this.publication = publication;
        this.wakeReceiver = wakeReceiver;
        this.longestChunk = publication.maxPayloadLength() - TensorFrame.HEADER_BYTES;
    }

    int toRank() {
        return toRank;
    }

    boolean isConnected() {
        return publication.isConnected();
    }

    /** Credits of this channel travel here. Before the endpoint is used. */
    void carryCreditsOf(InboundChannel channel) {
        credited.add(channel);
    }

    /** Copies the tensor, or what is left of it, into the log. */
    @SuppressWarnings("ThreadPriorityCheck") // a yield lets the receiver on this core drain the log
    OfferResult send(OutboundChannel channel, FrameKey key, MemorySegment tensor) {
        lock.lock();
        try {
            flushCredits();
            long bytes = tensor.byteSize();
            int patience = PATIENCE;
            boolean complete = false;
            while (!complete) {
                int chunk = (int) Math.min(longestChunk, bytes - channel.position());
                long result = publication.tryClaim(TensorFrame.HEADER_BYTES + chunk, claim);
                if (result > 0) {
                    channel.begin(key, bytes);
                    write(channel, key, tensor, chunk);
                    complete = channel.advance(bytes, chunk);
                    wakeReceiver.run(); // it copies out while this thread copies in
                } else if (result == Publication.BACK_PRESSURED && patience-- > 0) {
                    wakeReceiver.run();
                    Thread.yield();
                } else if (result != Publication.ADMIN_ACTION) {
                    return answer(result);
                }
            }
            return OfferResult.SENT;
        } finally {
            lock.unlock();
        }
    }

    private void write(OutboundChannel channel, FrameKey key, MemorySegment tensor, int chunk) {
        long position = channel.position();
        boolean copied = false;
        try {
            frame.begin(
                            claim.buffer(),
                            claim.offset(),
                            TensorFrame.Type.DATA,
                            settings.runId(),
                            settings.epoch(),
                            fromRank)
                    .chunk(key, tensor.byteSize(), position, chunk);
            if (settings.crc()) {
                frame.crc32c(Checksums.crc32c(tensor, position, chunk));
            }
            RawMemory.copyTo(
                    claim.buffer(),
                    claim.offset() + TensorFrame.HEADER_BYTES,
                    tensor,
                    position,
                    chunk);
            copied = true;
        } finally {
            if (copied) {
                claim.commit();
            } else {
                claim.abort();
            }
        }
    }

    private OfferResult answer(long result) {
        if (result == Publication.BACK_PRESSURED) {
            return OfferResult.BACK_PRESSURED;
        }
        if (result == Publication.NOT_CONNECTED) {
            return OfferResult.NOT_CONNECTED;
        }
        return new OfferResult.Failed(
                "the stream from rank %d to rank %d is %s"
                        .formatted(fromRank, toRank, Publication.errorString(result)));
    }

    /** Sends the credits that are owed now; what meets a full log goes with a later call. */
    void sendCredits() {
        lock.lock();
        try {
            if (flushCredits()) {
                wakeReceiver.run();
            }
        } finally {
            lock.unlock();
        }
    }

    /** As {@link #sendCredits} for the poller, which leaves it to the rank's thread if busy. */
    void helpWithCredits() {
        if (owesCredit() && lock.tryLock()) {
            try {
                flushCredits();
            } finally {
                lock.unlock();
            }
        }
    }

    boolean owesCredit() {
        for (int i = 0; i < credited.size(); i++) {
            if (credited.get(i).owesCredit()) {
                return true;
            }
        }
        return false;
    }

    private boolean flushCredits() {
        boolean sent = false;
        for (int i = 0; i < credited.size(); i++) {
            InboundChannel channel = credited.get(i);
            if (channel.owesCredit() && claimHeader(TensorFrame.Type.CREDIT) != null) {
                long credits = channel.creditsOwed();
                frame.channel(channel.key()).taken(credits);
                claim.commit();
                channel.creditSent(credits);
                sent = true;
            }
        }
        return sent;
    }

    /** Says that nothing more will come, if the peer still listens, and closes. */
    void close(boolean inGoodOrder) {
        lock.lock();
        try {
            if (inGoodOrder) {
                flushCredits();
                if (claimHeader(TensorFrame.Type.END_OF_STREAM) != null) {
                    claim.commit();
                    wakeReceiver.run();
                }
            }
            publication.close();
        } finally {
            lock.unlock();
        }
    }

    private @Nullable TensorFrame claimHeader(TensorFrame.Type type) {
        for (int attempt = 0; attempt < PATIENCE; attempt++) {
            long result = publication.tryClaim(TensorFrame.HEADER_BYTES, claim);
            if (result > 0) {
                return frame.begin(
                        claim.buffer(),
                        claim.offset(),
                        type,
                        settings.runId(),
                        settings.epoch(),
                        fromRank);
            }
            if (result != Publication.ADMIN_ACTION) {
                return null;
            }
        }
        return null;
    }
}
