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
    private final int epoch;
    private final int rank;
    private final List<InboundChannel> inbound;
    private final List<OutboundChannel> outbound;
    private final List<PeerLink> links;
    private final List<Sender> senders;
    private final Strangers strangers = new Strangers(System.nanoTime());
    private final FrameListener listener;
    private final RefusalCounts refusals;
    private final TensorFrame frame = new TensorFrame();
    private final FragmentHandler ipcHandler = (log, at, n, h) -> onFragment(log, at, n, h, false);
    private final FragmentHandler udpHandler = (log, at, n, h) -> onFragment(log, at, n, h, true);

    private @Nullable Subscription ipc;
    private @Nullable Subscription udp;
    private boolean closed;
    private boolean failureTold;
    private volatile @Nullable DataPlaneException failure;

    Inbox(
            AeronSettings settings,
            int epoch,
            int rank,
            List<InboundChannel> inbound,
            List<OutboundChannel> outbound,
            List<PeerLink> links,
            List<Sender> senders,
            FrameListener listener,
            RefusalCounts refusals) {
        this.settings = settings;
        this.epoch = settings.epoch() + epoch;
        this.rank = rank;
        this.inbound = inbound;
        this.outbound = outbound;
        this.links = links;
        this.senders = senders;
        this.listener = listener;
        this.refusals = refusals;
    }

    synchronized void listenToIpc(Subscription stream) {
        ipc = stream;
    }

    synchronized void listenToUdp(Subscription stream) {
        udp = stream;
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
            links.get(i).help();
        }
        return (ipc == null ? 0 : ipc.poll(ipcHandler, FRAGMENTS))
                + (udp == null ? 0 : udp.poll(udpHandler, FRAGMENTS));
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

    private void onFragment(
            DirectBuffer buffer, int offset, int length, Header header, boolean overUdp) {
        if (closed || failure != null) {
            return;
        }
        try {
            FrameRefusal refusal = judge(buffer, offset, length, header, overUdp);
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
            DirectBuffer buffer, int offset, int length, Header header, boolean overUdp) {
        if (header.flags() != FrameDescriptor.UNFRAGMENTED) {
            return FrameRefusal.NOT_A_FRAME;
        }
        FrameRefusal refusal =
                frame.wrap(buffer, offset, length).check(length, settings.runId(), epoch);
        if (refusal != null) {
            return refusal;
        }
        int session = header.sessionId();
        Sender sender = sender(frame.fromRank());
        if (sender == null || sender.isUdp() != overUdp || !sender.mayBe(session)) {
            return FrameRefusal.UNKNOWN_CHANNEL;
        }
        if (isSealed() && !sender.knows(session) && !strangers.mayDeriveKey(System.nanoTime())) {
            return FrameRefusal.CORRUPT;
        }
        FrameForm form = sender.form(session);
        if (!form.isIntact(frame, buffer, offset, length, header.position())) {
            sender.damaged();
            onDamage(sender, header);
            return FrameRefusal.CORRUPT;
        }
        sender.bind(session);
        return switch (frame.type()) {
            case DATA -> onData(form);
            case CREDIT -> onCredit();
            case END_OF_STREAM -> onEndOfStream(sender, session);
            case RESEND -> onResend();
            case PROBE -> onProbe();
        };
    }

    /** Of a known session: asked for again. A stranger that never sends a good frame is dropped. */
    private void onDamage(Sender sender, Header header) {
        if (!sender.isBoundTo(header.sessionId())) {
            if (isSealed() && strangers.isTooMany(header.sessionId())) {
                LOG.warn(
                        "rank {} drops session {}: none of its frames has rank {}'s seal",
                        rank,
                        header.sessionId(),
                        sender.rank());
                ((Image) header.context()).reject("no frame of it is sealed with the run's key");
            }
            return;
        }
        InboundChannel channel = frame.type() == TensorFrame.Type.DATA ? inboundOfFrame() : null;
        if (channel != null && channel.damaged(frame)) {
            fail(
                    new DataPlaneException(
                            "rank %d received %s on %s from rank %d damaged %d times at byte %d: the link to that rank's host corrupts data"
                                    .formatted(
                                            rank,
                                            ChannelNames.of(frame),
                                            ChannelNames.of(channel.key()),
                                            frame.fromRank(),
                                            InboundChannel.DAMAGE_LIMIT,
                                            frame.offset())));
        }
    }

    private boolean isSealed() {
        return settings.links().key().isPresent();
    }

    private @Nullable FrameRefusal onData(FrameForm form) {
        InboundChannel channel = inboundOfFrame();
        if (channel == null) {
            return FrameRefusal.UNKNOWN_CHANNEL;
        }
        FrameRefusal refusal = channel.accept(frame, form.payload(), form.payloadAt());
        if (refusal == FrameRefusal.OUT_OF_ORDER && form.checks()) {
            channel.missed();
        }
        FrameKey arrived = refusal == null ? channel.complete() : null;
        if (arrived != null) {
            listener.onFrame(arrived, channel.lastBytes());
        }
        return refusal;
    }

    private @Nullable FrameRefusal onCredit() {
        OutboundChannel channel = outboundOfFrame();
        if (channel == null) {
            return FrameRefusal.UNKNOWN_CHANNEL;
        }
        if (!channel.isPlausible(frame.taken(), frame.sequence())) {
            return FrameRefusal.CREDIT_EXCEEDED;
        }
        if (channel.isChecked()) {
            channel.stirred(System.nanoTime());
        }
        if (channel.credited(frame.taken(), frame.sequence())) {
            listener.onCredit(channel.key());
        }
        return null;
    }

    private @Nullable FrameRefusal onResend() {
        OutboundChannel channel = outboundOfFrame();
        return channel != null && channel.misses(frame.sequence(), frame.offset())
                ? null
                : FrameRefusal.UNKNOWN_CHANNEL;
    }

    private @Nullable FrameRefusal onProbe() {
        InboundChannel channel = inboundOfFrame();
        if (channel == null) {
            return FrameRefusal.UNKNOWN_CHANNEL;
        }
        channel.probed(frame.sequence(), frame.offset());
        return null;
    }

    private @Nullable InboundChannel inboundOfFrame() {
        for (int i = 0; i < inbound.size(); i++) {
            InboundChannel channel = inbound.get(i);
            if (frame.isOf(channel.key()) && channel.fromRank() == frame.fromRank()) {
                return channel;
            }
        }
        return null;
    }

    private @Nullable OutboundChannel outboundOfFrame() {
        for (int i = 0; i < outbound.size(); i++) {
            OutboundChannel channel = outbound.get(i);
            if (frame.isOf(channel.key()) && channel.link().toRank() == frame.fromRank()) {
                return channel;
            }
        }
        return null;
    }

    /** Said several times where one might be lost. */
    private @Nullable FrameRefusal onEndOfStream(Sender sender, int session) {
        if (!sender.hasEnded(session)) {
            sender.end();
            listener.onPeerClosed(sender.rank());
        }
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
    }

    /** A publication went away: in good order after its end marker, otherwise its process died. */
    void onUnavailable(Image image) {
        for (Sender sender : senders) {
            if (sender.vanishedWith(image.sessionId())) {
                fail(
                        new DataPlaneException(
                                "rank %d lost the stream from rank %d without its end marker: that process died or stood still for too long"
                                        .formatted(rank, sender.rank())));
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
        if (ipc != null) {
            ipc.close();
        }
        if (udp != null) {
            udp.close();
        }
    }

    private @Nullable Sender sender(int fromRank) {
        for (int i = 0; i < senders.size(); i++) {
            if (senders.get(i).rank() == fromRank) {
                return senders.get(i);
            }
        }
        return null;
    }
}
