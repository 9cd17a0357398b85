package dev.penstock.actors.dataplane.aeron;

import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.OfferResult;
import dev.penstock.actors.dataplane.TensorFrame;
import io.aeron.Publication;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The way from one rank to another: tensors, and the credits for tensors that come the other way.
 * The rank's thread sends; the poller helps out with credits that met a full log and with what has
 * to be sent again, hence a lock, which the poller only tries.
 */
final class PeerLink {
    /** Attempts at a full log before the caller is told; each gives the core to the receiver. */
    private static final int PATIENCE = 20;

    /** A sender that hears nothing for so long asks whether its last frames arrived. */
    private static final long QUIET_NANOS = 100_000_000;

    /** The end of a stream cannot be asked for again. */
    private static final int ENDS = 3;

    private final int fromRank;
    private final int toRank;
    private final boolean udp;
    private final FrameWriter writer;
    private final Runnable wakeReceiver;

    private final ReentrantLock lock = new ReentrantLock();
    private final List<InboundChannel> credited = new ArrayList<>();
    private final List<OutboundChannel> sending = new ArrayList<>();

    PeerLink(int fromRank, int toRank, boolean udp, FrameWriter writer, Runnable wakeReceiver) {
        this.fromRank = fromRank;
        this.toRank = toRank;
        this.udp = udp;
        this.writer = writer;
        this.wakeReceiver = wakeReceiver;
    }

    int toRank() {
        return toRank;
    }

    /** Whether frames to and from this peer travel over UDP. */
    boolean isUdp() {
        return udp;
    }

    /** Whether damage is found, and tensors are kept until it is excluded. */
    boolean checks() {
        return writer.checks();
    }

    boolean isConnected() {
        return writer.isConnected();
    }

    /** Credits of this channel travel here. Before the endpoint is used. */
    void carryCreditsOf(InboundChannel channel) {
        credited.add(channel);
    }

    /** Tensors of this channel travel here. Before the endpoint is used. */
    void carry(OutboundChannel channel) {
        sending.add(channel);
    }

    /** Copies the tensor, or what is left of it, into the log. */
    OfferResult send(OutboundChannel channel, FrameKey key, MemorySegment tensor) {
        lock.lock();
        try {
            flushCredits();
            if (channel.sendsAgain() && !channel.sendAgain(writer)) {
                channel.waitsForLog();
                return OfferResult.BACK_PRESSURED;
            }
            long bytes = tensor.byteSize();
            int patience = PATIENCE;
            boolean complete = false;
            while (!complete) {
                long result = sendChunk(channel, key, tensor);
                if (result > 0) {
                    int chunk = (int) Math.min(writer.longestChunk(), bytes - channel.position());
                    complete = channel.advance(bytes, chunk);
                    wakeReceiver.run(); // it copies out while this thread copies in
                } else if (result == Publication.BACK_PRESSURED && patience-- > 0) {
                    wakeReceiver.run();
                    Thread.yield(); // lets the receiver on this core drain the log
                } else if (result != Publication.ADMIN_ACTION) {
                    if (result == Publication.BACK_PRESSURED) {
                        channel.waitsForLog();
                    }
                    return answer(result);
                }
            }
            if (checks()) {
                channel.stirred(System.nanoTime());
            }
            return OfferResult.SENT;
        } finally {
            lock.unlock();
        }
    }

    private long sendChunk(OutboundChannel channel, FrameKey key, MemorySegment tensor) {
        long position = channel.position();
        int chunk = (int) Math.min(writer.longestChunk(), tensor.byteSize() - position);
        return writer.chunk(channel, key, channel.number(), tensor, position, chunk);
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

    /**
     * What the poller does in each round: credits that met a full log, requests, and what has to be
     * sent again. Left to the rank's thread if that is busy here.
     */
    void help() {
        long now = checks() ? System.nanoTime() : 0;
        if (needsHelp(now) && lock.tryLock()) {
            try {
                flushCredits();
                for (int i = 0; i < credited.size(); i++) {
                    askAgain(credited.get(i));
                }
                for (int i = 0; i < sending.size(); i++) {
                    OutboundChannel channel = sending.get(i);
                    if (channel.sendsAgain()) {
                        channel.sendAgain(writer);
                        channel.stirred(now);
                    } else if (checks() && channel.isQuiet(now, QUIET_NANOS)) {
                        probe(channel, now);
                    }
                }
            } finally {
                lock.unlock();
            }
        }
    }

    private boolean needsHelp(long now) {
        if (owesCredit()) {
            return true;
        }
        if (!checks()) {
            return false;
        }
        for (int i = 0; i < credited.size(); i++) {
            if (credited.get(i).asksAgain()) {
                return true;
            }
        }
        for (int i = 0; i < sending.size(); i++) {
            if (sending.get(i).sendsAgain() || sending.get(i).isQuiet(now, QUIET_NANOS)) {
                return true;
            }
        }
        return false;
    }

    /** The poller's alone, which knows exactly what has arrived. */
    private void askAgain(InboundChannel channel) {
        if (channel.asksAgain()
                && writer.signal(
                        TensorFrame.Type.RESEND,
                        channel.key(),
                        0,
                        channel.verified(),
                        channel.filled())) {
            channel.askedAgain();
        }
    }

    private void probe(OutboundChannel channel, long now) {
        writer.signal(
                TensorFrame.Type.PROBE, channel.key(), 0, channel.number(), channel.position());
        channel.stirred(now);
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
            if (channel.owesCredit()) {
                channel.aboutToAnswer();
                long credits = channel.creditsOwed();
                long verified = channel.verified();
                if (writer.signal(TensorFrame.Type.CREDIT, channel.key(), credits, verified, 0)) {
                    channel.creditSent(credits);
                    sent = true;
                } else {
                    channel.answerLater();
                }
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
                int ends = checks() ? ENDS : 1;
                for (int i = 0; i < ends; i++) {
                    writer.signal(TensorFrame.Type.END_OF_STREAM, null, 0, 0, 0);
                }
                wakeReceiver.run();
            }
            writer.close();
        } finally {
            lock.unlock();
        }
    }
}
