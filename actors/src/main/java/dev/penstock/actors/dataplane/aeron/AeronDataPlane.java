package dev.penstock.actors.dataplane.aeron;

import dev.penstock.actors.dataplane.DataPlane;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.DriverGoneException;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.FrameListener;
import dev.penstock.actors.dataplane.FrameRefusal;
import dev.penstock.actors.dataplane.Opening;
import dev.penstock.actors.dataplane.Outbound;
import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.dataplane.SharedMemoryFullException;
import dev.penstock.actors.dataplane.Transport;
import io.aeron.Aeron;
import io.aeron.CommonContext;
import io.aeron.ErrorCode;
import io.aeron.ExclusivePublication;
import io.aeron.Image;
import io.aeron.Subscription;
import io.aeron.exceptions.AeronException;
import io.aeron.exceptions.ClientTimeoutException;
import io.aeron.exceptions.ConductorServiceTimeoutException;
import io.aeron.exceptions.DriverTimeoutException;
import io.aeron.exceptions.RegistrationException;
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
 * rank that it sends tensors or credits to: in shared memory if both use the same media driver,
 * else to the UDP endpoint of the other's process. The sender copies a chunk behind a small header
 * into the log, the poller copies it out into the receiver's slot: no other copy, no assembly.
 */
public final class AeronDataPlane implements DataPlane {
    /** A driver that shows no sign of life for so long counts as dead. */
    static final Duration DRIVER_TIMEOUT = Duration.ofSeconds(4);

    private static final Logger LOG = LoggerFactory.getLogger(AeronDataPlane.class);

    /** Of a process that has a limit for its files, or on a file system that has. */
    private static final String MAY_NOT_GROW = "File too large";

    private final AeronSettings settings;
    private final Aeron aeron;
    private final DriverRequests driver;
    private final Poller poller;
    private final RefusalCounts refusals = new RefusalCounts();
    private final Map<Integer, AeronEndpoint> endpoints = new ConcurrentHashMap<>();
    private final Map<Integer, List<PeerLink>> peers = new ConcurrentHashMap<>();
    private final Routes routes;
    private final PeerAddress address;
    private volatile boolean closed;

    private AeronDataPlane(AeronSettings settings) {
        this.settings = settings;
        this.poller = new Poller(settings.poller());
        this.aeron = connect(settings);
        this.driver = new DriverRequests(aeron, DriverRequests.PATIENCE);
        try {
            this.routes = Routes.open(driver, settings);
        } catch (RuntimeException e) {
            aeron.close();
            throw e;
        }
        this.address = routes.address();
    }

    /**
     * Connects to a running media driver, opens the UDP endpoint if the settings want one, and
     * starts the poller.
     *
     * @throws DriverGoneException if no driver answers in the settings' directory
     * @throws DataPlaneException if the endpoint cannot be bound
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
            throw new DriverGoneException(
                    "no media driver answers in %s: %s; is it running, with this run's directory?"
                            .formatted(settings.directory(), e.getMessage()),
                    e);
        }
    }

    @Override
    public synchronized Endpoint open(Opening opening, FrameListener listener) {
        int rank = opening.rank();
        if (closed || endpoints.containsKey(rank)) {
            throw new DataPlaneException(
                    "open rank %d: the %s"
                            .formatted(
                                    rank,
                                    closed ? "data plane is closed" : "rank is open already"));
        }
        ChannelChecks.require(rank, opening.inbound(), opening.outbound());
        Map<Integer, PeerLink> links = openLinks(opening);
        List<PeerLink> allLinks = List.copyOf(links.values());
        List<InboundChannel> receiving =
                opening.inbound().stream().map(InboundChannel::new).toList();
        receiving.forEach(channel -> link(links, channel.fromRank()).carryCreditsOf(channel));
        List<OutboundChannel> sending =
                opening.outbound().stream()
                        .map(channel -> outbound(channel, link(links, channel.toRank())))
                        .toList();
        sending.forEach(channel -> channel.link().carry(channel));
        List<Sender> senders = allLinks.stream().map(link -> sender(opening, link)).toList();
        Inbox inbox =
                new Inbox(
                        settings,
                        opening.epoch(),
                        rank,
                        receiving,
                        sending,
                        allLinks,
                        senders,
                        listener,
                        refusals);
        AeronEndpoint endpoint =
                new AeronEndpoint(
                        rank,
                        inbox,
                        receiving,
                        sending,
                        allLinks,
                        senders,
                        refusals,
                        () -> forget(rank, inbox));
        endpoints.put(rank, endpoint);
        peers.put(rank, allLinks);
        subscribe(opening, inbox, endpoint, allLinks);
        poller.add(inbox);
        expectSenders();
        return endpoint;
    }

    @Override
    public PeerAddress address() {
        return address;
    }

    @Override
    public boolean keepsSentTensors() {
        return settings.links().transport() != Transport.IPC || settings.links().checksIpc();
    }

    @Override
    public boolean isLost() {
        return aeron.isClosed();
    }

    /** Frames refused so far by this process, by reason. */
    public Map<FrameRefusal, Long> refusals() {
        return refusals.snapshot();
    }

    /** Frames of the endpoints that are open now which were sent again. */
    public long resentFrames() {
        return endpoints.values().stream().mapToLong(AeronEndpoint::resentFrames).sum();
    }

    private Map<Integer, PeerLink> openLinks(Opening opening) {
        TreeSet<Integer> ranks = new TreeSet<>();
        opening.inbound().forEach(channel -> ranks.add(channel.fromRank()));
        opening.outbound().forEach(channel -> ranks.add(channel.toRank()));
        Map<Integer, PeerLink> links = new TreeMap<>();
        try {
            for (int peer : ranks) {
                links.put(peer, openLink(opening, peer));
            }
            return links;
        } catch (AeronException e) {
            links.values().forEach(link -> link.close(false));
            throw cannotOpen(opening.rank(), e);
        } catch (DataPlaneException e) {
            links.values().forEach(link -> link.close(false));
            throw e;
        }
    }

    private PeerLink openLink(Opening opening, int peer) {
        int rank = opening.rank();
        PeerAddress there = opening.peers().getOrDefault(peer, address);
        boolean overUdp = routes.usesUdp(peer, there);
        ExclusivePublication publication =
                driver.publication(
                        overUdp
                                ? routes.uris().udpPublication(there.udpEndpoint())
                                : routes.uris().ipcPublication(),
                        settings.inbox(peer, opening.epoch()));
        FrameForm form = routes.form(overUdp, opening.epoch(), rank, peer, publication.sessionId());
        return new PeerLink(
                rank,
                peer,
                overUdp,
                new FrameWriter(settings, opening.epoch(), rank, publication, form),
                overUdp ? () -> {} : () -> wakeReceiver(peer));
    }

    private Sender sender(Opening opening, PeerLink link) {
        return new Sender(
                link.toRank(),
                link.isUdp(),
                session ->
                        routes.form(
                                link.isUdp(),
                                opening.epoch(),
                                link.toRank(),
                                opening.rank(),
                                session));
    }

    private void subscribe(
            Opening opening, Inbox inbox, AeronEndpoint endpoint, List<PeerLink> links) {
        int stream = settings.inbox(opening.rank(), opening.epoch());
        try {
            if (links.stream().anyMatch(PeerLink::isUdp)) {
                inbox.listenToUdp(subscription(routes.udpInbox(), stream, inbox));
            }
            if (!links.stream().allMatch(PeerLink::isUdp)) {
                inbox.listenToIpc(subscription(ChannelUris.IPC, stream, inbox));
            }
        } catch (AeronException e) {
            endpoint.close();
            throw cannotOpen(opening.rank(), e);
        }
    }

    private Subscription subscription(String channel, int stream, Inbox inbox) {
        return driver.subscription(
                channel, stream, _ -> poller.wake(), image -> onUnavailable(inbox, image));
    }

    /** Of a driver that is gone, the client takes all images away before it says so. */
    private void onUnavailable(Inbox inbox, Image image) {
        boolean driverLives =
                CommonContext.isDriverActive(
                        settings.directory().toFile(), DRIVER_TIMEOUT.toMillis(), LOG::trace);
        if (driverLives) {
            inbox.onUnavailable(image);
        }
    }

    static DataPlaneException cannotOpen(int rank, AeronException cause) {
        String refusal =
                "open rank %d: the media driver refused: %s".formatted(rank, cause.getMessage());
        return isFull(cause)
                ? new SharedMemoryFullException(refusal, cause)
                : new DataPlaneException(refusal, cause);
    }

    /** The driver's own code for it is for full disks only, not for files that may not grow. */
    private static boolean isFull(AeronException refusal) {
        return refusal instanceof RegistrationException answer
                && (answer.errorCode() == ErrorCode.STORAGE_SPACE
                        || String.valueOf(answer.getMessage()).contains(MAY_NOT_GROW));
    }

    private static OutboundChannel outbound(Outbound channel, PeerLink link) {
        return new OutboundChannel(channel, link, link.checks());
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
                        .anyMatch(link -> link.isUdp() || !endpoints.containsKey(link.toRank())));
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
        DataPlaneException failure = failure(error);
        endpoints.values().forEach(endpoint -> endpoint.fail(failure));
        poller.wake();
    }

    private DataPlaneException failure(Throwable error) {
        if (error instanceof DriverTimeoutException) {
            return new DriverGoneException(
                    "the media driver in %s died or stood still for %d s: %s"
                            .formatted(
                                    settings.directory(),
                                    DRIVER_TIMEOUT.toSeconds(),
                                    error.getMessage()),
                    error);
        }
        return new DataPlaneException(
                "this process stood still for too long and the media driver in %s has given it up: %s"
                        .formatted(settings.directory(), error.getMessage()),
                error);
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
