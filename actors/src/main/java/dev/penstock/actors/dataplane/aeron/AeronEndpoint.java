package dev.penstock.actors.dataplane.aeron;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.LinkTraffic;
import dev.penstock.actors.dataplane.OfferResult;
import java.lang.foreign.MemorySegment;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.ToLongFunction;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** A rank's endpoint: finds the channel and passes on. */
final class AeronEndpoint implements Endpoint {
    private final int rank;
    private final Inbox inbox;
    private final List<PeerLink> links;
    private final Map<ChannelKey, InboundChannel> inbound = new HashMap<>();
    private final Map<ChannelKey, OutboundChannel> outbound = new HashMap<>();
    private final Map<Integer, PeerLink> linkTo = new HashMap<>();
    private final List<Sender> senders;
    private final RefusalCounts refusals;
    private final Runnable onClose;
    private volatile boolean closed;

    AeronEndpoint(
            int rank,
            Inbox inbox,
            List<InboundChannel> inbound,
            List<OutboundChannel> outbound,
            List<PeerLink> links,
            List<Sender> senders,
            RefusalCounts refusals,
            Runnable onClose) {
        this.rank = rank;
        this.inbox = inbox;
        this.links = links;
        this.senders = senders;
        this.refusals = refusals;
        this.onClose = onClose;
        inbound.forEach(channel -> this.inbound.put(channel.key(), channel));
        outbound.forEach(channel -> this.outbound.put(channel.key(), channel));
        links.forEach(link -> linkTo.put(link.toRank(), link));
    }

    @Override
    public OfferResult offer(FrameKey key, MemorySegment tensor) {
        if (closed) {
            return new OfferResult.Failed("the endpoint of rank %d is closed".formatted(rank));
        }
        DataPlaneException failure = inbox.failure();
        if (failure != null) {
            return new OfferResult.Failed(String.valueOf(failure.getMessage()));
        }
        OutboundChannel channel = outbound(key.channel());
        if (tensor.byteSize() == 0) {
            throw new DataPlaneException(
                    "offer on %s: the tensor %s is empty"
                            .formatted(ChannelNames.of(key.channel()), ChannelNames.of(key)));
        }
        if (!channel.mayOffer(key, tensor.byteSize())) {
            channel.waitsForCredit();
            return OfferResult.NO_CREDIT;
        }
        return channel.link().send(channel, key, tensor);
    }

    @Override
    public int credits(ChannelKey channel) {
        return outbound(channel).credits();
    }

    @Override
    public long verified(ChannelKey channel) {
        return outbound(channel).verified();
    }

    @Override
    public int arrived(FrameKey key) {
        return inbound(key.channel()).arrived(key);
    }

    @Override
    public int take(FrameKey key) {
        InboundChannel channel = inbound(key.channel());
        int slot = channel.take(key);
        returnCredit(channel);
        return slot;
    }

    @Override
    public void release(ChannelKey channel, int slot) {
        InboundChannel receiving = inbound(channel);
        receiving.release(slot);
        returnCredit(receiving);
    }

    private void returnCredit(InboundChannel channel) {
        PeerLink link = linkTo.get(channel.fromRank());
        if (link != null && channel.owesCredit() && !closed) {
            link.sendCredits();
        }
    }

    @Override
    public String describe() {
        Stream<String> lines =
                Stream.concat(
                        inbound.values().stream().map(InboundChannel::describe),
                        outbound.values().stream().map(OutboundChannel::describe));
        String text =
                lines.sorted()
                        .map(line -> "rank %d %s".formatted(rank, line))
                        .collect(Collectors.joining("\n"));
        return refusals.snapshot().isEmpty()
                ? text
                : text + "\nrefused frames: " + refusals.snapshot();
    }

    @Override
    public List<LinkTraffic> traffic() {
        return links.stream()
                .sorted(Comparator.comparingInt(PeerLink::toRank))
                .map(link -> traffic(link.toRank()))
                .toList();
    }

    private LinkTraffic traffic(int peer) {
        return new LinkTraffic(
                peer,
                sum(peer, OutboundChannel::sentBytes),
                inbound.values().stream()
                        .filter(channel -> channel.fromRank() == peer)
                        .mapToLong(InboundChannel::receivedBytes)
                        .sum(),
                sum(peer, OutboundChannel::backPressured),
                sum(peer, OutboundChannel::outOfCredit),
                sum(peer, OutboundChannel::resent),
                senders.stream()
                        .filter(sender -> sender.rank() == peer)
                        .mapToLong(Sender::corrupt)
                        .sum());
    }

    private long sum(int peer, ToLongFunction<OutboundChannel> counter) {
        return outbound.values().stream()
                .filter(channel -> channel.link().toRank() == peer)
                .mapToLong(counter)
                .sum();
    }

    long resentFrames() {
        return outbound.values().stream().mapToLong(OutboundChannel::resent).sum();
    }

    /** The transport is gone: the listener hears it from the poller. */
    void fail(DataPlaneException failure) {
        inbox.fail(failure);
    }

    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        links.forEach(link -> link.close(inbox.failure() == null));
        inbox.close();
        onClose.run();
    }

    private InboundChannel inbound(ChannelKey key) {
        InboundChannel channel = inbound.get(key);
        if (channel == null) {
            throw unknown(key, "inbound", inbound.keySet());
        }
        return channel;
    }

    private OutboundChannel outbound(ChannelKey key) {
        OutboundChannel channel = outbound.get(key);
        if (channel == null) {
            throw unknown(key, "outbound", outbound.keySet());
        }
        return channel;
    }

    private DataPlaneException unknown(
            ChannelKey key, String direction, Iterable<ChannelKey> known) {
        return new DataPlaneException(
                "rank %d has no %s channel %s; it was opened with %s"
                        .formatted(rank, direction, ChannelNames.of(key), known));
    }
}
