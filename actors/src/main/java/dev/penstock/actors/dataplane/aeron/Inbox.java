package dev.penstock.actors.dataplane.aeron;

import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameListener;
import dev.penstock.actors.dataplane.FrameRefusal;
import dev.penstock.actors.dataplane.TensorFrame;
import io.aeron.Image;
import io.aeron.Subscription;
import io.aeron.logbuffer.FragmentHandler;
import io.aeron.logbuffer.FrameDescriptor;
import io.aeron.logbuffer.Header;
import java.util.List;
import org.agrona.DirectBuffer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What arrives for one rank: judges each frame, moves it, tells the listener. The poller's, but for
 * {@link #fail}, {@link #close} and {@link #onUnavailable}.
 */
final class Inbox {
    private static final Logger LOG = LoggerFactory.getLogger(Inbox.class);

    /** Frames per poll: about a MiB, so that the sender sees room soon. */
    private static final int FRAGMENTS = 16;

    private final AeronSettings settings;
    private final int rank;
    private final List<InboundChannel> inbound;
    private final List<OutboundChannel> outbound;
    private final List<PeerLink> links;
    private final List<Sender> senders;
    private final FrameListener listener;
    private final RefusalCounts refusals;
    private final TensorFrame frame = new TensorFrame();
    private final FragmentHandler handler = this::onFragment;

    private @Nullable Subscription subscription;
    private boolean closed;
    private boolean failureTold;
    private volatile @Nullable DataPlaneException failure;

    Inbox(
            AeronSettings settings,
            int rank,
            List<InboundChannel> inbound,
            List<OutboundChannel> outbound,
            List<PeerLink> links,
            FrameListener listener,
            RefusalCounts refusals) {
        this.settings = settings;
        this.rank = rank;
        this.inbound = inbound;
        this.outbound = outbound;
        this.links = links;
        this.senders = links.stream().map(link -> new Sender(link.toRank())).toList();
        this.listener = listener;
        this.refusals = refusals;
    }

    synchronized void listenTo(Subscription stream) {
        subscription = stream;
    }

    /** One round; returns the number of frames seen. */
    synchronized int poll() {
        if (closed || failureTold) {
            return 0;
        }
        DataPlaneException broken = failure;
        if (broken != null) {
            failureTold = true;
            listener.onFailure(broken);
            return 1;
        }
        for (int i = 0; i < links.size(); i++) {
            links.get(i).helpWithCredits();
        }
        Subscription stream = subscription;
        return stream == null ? 0 : stream.poll(handler, FRAGMENTS);
    }

    /** Whether a credit waits for room in a log. */
    boolean owesCredit() {
        for (int i = 0; i < links.size(); i++) {
            if (links.get(i).owesCredit()) {
                return true;
            }
        }
        return false;
    }

    private void onFragment(DirectBuffer buffer, int offset, int length, Header header) {
        if (closed || failure != null) {
            return;
        }
        try {
            FrameRefusal refusal = judge(buffer, offset, length, header);
            if (refusal != null) {
                refuse(refusal, header.sessionId());
            }
        } catch (RuntimeException e) {
            fail(
                    new DataPlaneException(
                            "rank %d cannot take in a tensor: %s; were its slots freed before its endpoint was closed?"
                                    .formatted(rank, e),
                            e));
        }
    }

    private @Nullable FrameRefusal judge(
            DirectBuffer buffer, int offset, int length, Header header) {
        if (header.flags() != FrameDescriptor.UNFRAGMENTED) {
            return FrameRefusal.NOT_A_FRAME;
        }
        FrameRefusal refusal =
                frame.wrap(buffer, offset, length)
                        .check(length, settings.runId(), settings.epoch());
        if (refusal != null) {
            return refusal;
        }
        Sender sender = sender(frame.fromRank());
        if (sender == null || !sender.isBoundTo(header.sessionId())) {
            return FrameRefusal.UNKNOWN_CHANNEL;
        }
        return switch (frame.type()) {
            case DATA -> onData(buffer, offset + TensorFrame.HEADER_BYTES);
            case CREDIT -> onCredit();
            case END_OF_STREAM -> onEndOfStream(sender);
        };
    }

    private @Nullable FrameRefusal onData(DirectBuffer buffer, int payloadAt) {
        for (int i = 0; i < inbound.size(); i++) {
            InboundChannel channel = inbound.get(i);
            if (frame.isOf(channel.key()) && channel.fromRank() == frame.fromRank()) {
                FrameRefusal refusal = channel.accept(frame, buffer, payloadAt);
                FrameKey arrived = refusal == null ? channel.complete() : null;
                if (arrived != null) {
                    listener.onFrame(arrived);
                }
                return refusal;
            }
        }
        return FrameRefusal.UNKNOWN_CHANNEL;
    }

    private @Nullable FrameRefusal onCredit() {
        for (int i = 0; i < outbound.size(); i++) {
            OutboundChannel channel = outbound.get(i);
            if (frame.isOf(channel.key()) && channel.link().toRank() == frame.fromRank()) {
                if (!channel.isPlausible(frame.taken())) {
                    return FrameRefusal.CREDIT_EXCEEDED;
                }
                if (channel.credited(frame.taken())) {
                    listener.onCredit(channel.key());
                }
                return null;
            }
        }
        return FrameRefusal.UNKNOWN_CHANNEL;
    }

    private @Nullable FrameRefusal onEndOfStream(Sender sender) {
        sender.ended = true;
        listener.onPeerClosed(sender.rank);
        return null;
    }

    private void refuse(FrameRefusal refusal, int sessionId) {
        if (refusals.count(refusal)) {
            LOG.warn(
                    "rank {} refused a frame of session {}: {} (said once per reason)",
                    rank,
                    sessionId,
                    refusal);
        }
        if (refusal == FrameRefusal.CORRUPT) {
            fail(
                    new DataPlaneException(
                            "rank %d received a corrupt frame from rank %d on %s %d->%d: its checksum differs; the tensor is lost"
                                    .formatted(
                                            rank,
                                            frame.fromRank(),
                                            frame.kind(),
                                            frame.fromStage(),
                                            frame.stage())));
        }
    }

    /** A publication went away: in good order after its end marker, otherwise its process died. */
    void onUnavailable(Image image) {
        for (Sender sender : senders) {
            if (sender.vanishedWith(image.sessionId())) {
                fail(
                        new DataPlaneException(
                                "rank %d lost the stream from rank %d without its end marker: that process died or stood still for too long"
                                        .formatted(rank, sender.rank)));
            }
        }
    }

    /** The first failure counts; the poller tells it. */
    void fail(DataPlaneException reason) {
        if (failure == null) {
            failure = reason;
        }
    }

    @Nullable DataPlaneException failure() {
        return failure;
    }

    /** After this returns no slot is written and the listener hears nothing. */
    synchronized void close() {
        closed = true;
        if (subscription != null) {
            subscription.close();
        }
    }

    private @Nullable Sender sender(int fromRank) {
        for (int i = 0; i < senders.size(); i++) {
            if (senders.get(i).rank == fromRank) {
                return senders.get(i);
            }
        }
        return null;
    }

    /**
     * A rank that sends here, and the session of its publication once a frame came. Another session
     * is heard only after this one ended.
     */
    private static final class Sender {
        private final int rank;
        private volatile boolean bound;
        private volatile boolean ended;
        private volatile int sessionId;

        Sender(int rank) {
            this.rank = rank;
        }

        boolean isBoundTo(int session) {
            if (!bound || (ended && sessionId != session)) {
                sessionId = session;
                bound = true;
                ended = false;
            }
            return bound && !ended && sessionId == session;
        }

        boolean vanishedWith(int session) {
            return bound && !ended && sessionId == session;
        }
    }
}
