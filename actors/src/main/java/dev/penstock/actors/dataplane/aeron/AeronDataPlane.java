package dev.penstock.actors.dataplane.aeron;

import dev.penstock.actors.dataplane.DataPlane;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.FrameListener;
import dev.penstock.actors.dataplane.FrameRefusal;
import dev.penstock.actors.dataplane.Inbound;
import dev.penstock.actors.dataplane.Outbound;
import io.aeron.Aeron;
import io.aeron.ChannelUriStringBuilder;
import io.aeron.exceptions.AeronException;
import io.aeron.exceptions.ClientTimeoutException;
import io.aeron.exceptions.ConductorServiceTimeoutException;
import io.aeron.exceptions.DriverTimeoutException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import org.agrona.concurrent.AgentTerminationException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The data plane of one process over one media driver. {@link #open} and {@link #close} may be
 * called from any thread.
 *
 * <p>Each rank has an inbox stream; each rank has a publication of its own into the inbox of every
 * rank that it sends tensors or credits to. The sender copies a chunk behind a small header into
 * the log, the poller copies it out into the receiver's slot: no other copy, no assembly.
 */
public final class AeronDataPlane implements DataPlane {
    /** A driver that shows no sign of life for so long counts as dead. */
    static final Duration DRIVER_TIMEOUT = Duration.ofSeconds(4);

    private static final Logger LOG = LoggerFactory.getLogger(AeronDataPlane.class);

    private final AeronSettings settings;
    private final Aeron aeron;
    private final Poller poller;
    private final RefusalCounts refusals = new RefusalCounts();
    private final Map<Integer, AeronEndpoint> endpoints = new ConcurrentHashMap<>();
    private final Map<Integer, List<Integer>> peers = new ConcurrentHashMap<>();
    private volatile boolean closed;

    private AeronDataPlane(AeronSettings settings) {
        this.settings = settings;
        this.poller = new Poller(settings.poller());
        this.aeron = connect(settings);
    }

    /**
     * Connects to a running media driver and starts the poller.
     *
     * @throws DataPlaneException if no driver answers in the settings' directory
     */
    public static AeronDataPlane start(AeronSettings settings) {
        AeronDataPlane plane = new AeronDataPlane(settings);
        plane.poller.start();
        return plane;
    }

    private Aeron connect(AeronSettings settings) {
        try {
            return Aeron.connect(
                    new Aeron.Context()
                            .aeronDirectoryName(settings.directory().toString())
                            .driverTimeoutMs(DRIVER_TIMEOUT.toMillis())
                            .clientName("penstock")
                            .threadFactory(
                                    Thread.ofPlatform().daemon().name("aeron-client").factory())
                            .errorHandler(this::onError)
                            .subscriberErrorHandler(this::onError));
        } catch (AeronException e) {
            throw new DataPlaneException(
                    "no media driver answers in %s: %s; is it running, with this run's directory?"
                            .formatted(settings.directory(), e.getMessage()),
                    e);
        }
    }

    @Override
    public Endpoint open(
            int rank, List<Inbound> inbound, List<Outbound> outbound, FrameListener listener) {
        return open(rank, settings.epoch(), inbound, outbound, listener);
    }

    @Override
    public synchronized Endpoint open(
            int rank,
            int epoch,
            List<Inbound> inbound,
            List<Outbound> outbound,
            FrameListener listener) {
        if (closed || endpoints.containsKey(rank)) {
            throw new DataPlaneException(
                    "open rank %d: the %s"
                            .formatted(
                                    rank,
                                    closed ? "data plane is closed" : "rank is open already"));
        }
        ChannelChecks.require(rank, inbound, outbound);
        AeronSettings ofEpoch = settings.withEpoch(epoch);
        Map<Integer, PeerLink> links = openLinks(ofEpoch, rank, inbound, outbound);
        List<PeerLink> allLinks = List.copyOf(links.values());
        List<InboundChannel> receiving = inbound.stream().map(InboundChannel::new).toList();
        receiving.forEach(channel -> link(links, channel.fromRank()).carryCreditsOf(channel));
        List<OutboundChannel> sending =
                outbound.stream()
                        .map(channel -> new OutboundChannel(channel, link(links, channel.toRank())))
                        .toList();
        Inbox inbox = new Inbox(ofEpoch, rank, receiving, sending, allLinks, listener, refusals);
        AeronEndpoint endpoint =
                new AeronEndpoint(
                        rank,
                        inbox,
                        receiving,
                        sending,
                        allLinks,
                        refusals,
                        () -> forget(rank, inbox));
        endpoints.put(rank, endpoint);
        peers.put(rank, List.copyOf(links.keySet()));
        subscribe(ofEpoch, rank, inbox, endpoint);
        poller.add(inbox);
        expectSenders();
        return endpoint;
    }

    /** Frames refused so far by this process, by reason. */
    public Map<FrameRefusal, Long> refusals() {
        return refusals.snapshot();
    }

    private Map<Integer, PeerLink> openLinks(
            AeronSettings ofEpoch, int rank, List<Inbound> inbound, List<Outbound> outbound) {
        TreeSet<Integer> ranks = new TreeSet<>();
        inbound.forEach(channel -> ranks.add(channel.fromRank()));
        outbound.forEach(channel -> ranks.add(channel.toRank()));
        Map<Integer, PeerLink> links = new TreeMap<>();
        try {
            for (int peer : ranks) {
                links.put(
                        peer,
                        new PeerLink(
                                ofEpoch,
                                rank,
                                peer,
                                aeron.addExclusivePublication(channel(), ofEpoch.inbox(peer)),
                                () -> wakeReceiver(peer)));
            }
            return links;
        } catch (AeronException e) {
            links.values().forEach(link -> link.close(false));
            throw cannotOpen(rank, e);
        }
    }

    private void subscribe(AeronSettings ofEpoch, int rank, Inbox inbox, AeronEndpoint endpoint) {
        try {
            inbox.listenTo(
                    aeron.addSubscription(
                            ofEpoch.channel(),
                            ofEpoch.inbox(rank),
                            _ -> poller.wake(),
                            inbox::onUnavailable));
        } catch (AeronException e) {
            endpoint.close();
            throw cannotOpen(rank, e);
        }
    }

    private static DataPlaneException cannotOpen(int rank, AeronException cause) {
        return new DataPlaneException(
                "open rank %d: the media driver refused: %s".formatted(rank, cause.getMessage()),
                cause);
    }

    private String channel() {
        return new ChannelUriStringBuilder(settings.channel())
                .termLength(settings.termLengthBytes())
                .mtu(settings.frameBytes())
                .build();
    }

    private static PeerLink link(Map<Integer, PeerLink> links, int rank) {
        PeerLink link = links.get(rank);
        if (link == null) {
            throw new IllegalStateException("no link to rank " + rank);
        }
        return link;
    }

    private void wakeReceiver(int rank) {
        if (endpoints.containsKey(rank)) {
            poller.wake();
        }
    }

    private void forget(int rank, Inbox inbox) {
        poller.remove(inbox);
        endpoints.remove(rank);
        peers.remove(rank);
        expectSenders();
    }

    private void expectSenders() {
        poller.expectRemoteSenders(
                peers.values().stream()
                        .flatMap(List::stream)
                        .anyMatch(peer -> !endpoints.containsKey(peer)));
    }

    private void onError(Throwable error) {
        boolean fatal =
                error instanceof DriverTimeoutException
                        || error instanceof ConductorServiceTimeoutException
                        || error instanceof ClientTimeoutException;
        if (error instanceof AgentTerminationException) {
            LOG.debug("the data plane's Aeron client ends");
            return;
        }
        if (!fatal) {
            LOG.warn("the data plane's Aeron client reports an error", error);
            return;
        }
        String sentence =
                error instanceof DriverTimeoutException
                        ? "the media driver in %s died or stood still for %d s"
                                .formatted(settings.directory(), DRIVER_TIMEOUT.toSeconds())
                        : "this process stood still for too long and the media driver in %s has given it up"
                                .formatted(settings.directory());
        DataPlaneException failure =
                new DataPlaneException(sentence + ": " + error.getMessage(), error);
        endpoints.values().forEach(endpoint -> endpoint.fail(failure));
        poller.wake();
    }

    @Override
    public void close() {
        synchronized (this) {
            if (closed) {
                return;
            }
            closed = true;
        }
        List.copyOf(endpoints.values()).forEach(AeronEndpoint::close);
        poller.close();
        aeron.close();
    }
}
