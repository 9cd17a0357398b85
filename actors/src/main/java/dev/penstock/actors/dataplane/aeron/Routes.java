package dev.penstock.actors.dataplane.aeron;

import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.HostIdentity;
import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.dataplane.Transport;
import io.aeron.Subscription;
import io.aeron.exceptions.AeronException;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import javax.crypto.SecretKey;
import org.jspecify.annotations.Nullable;

/**
 * Where this process is reached, and by which way it reaches others. A media driver has one UDP
 * socket for a run, which all processes that use the driver share; it is held open by a
 * subscription on a stream that nobody sends on.
 */
final class Routes {
    private static final long BIND_NANOS = 5_000_000_000L;
    private static final long LOOK_NANOS = 1_000_000;

    private final AeronSettings settings;
    private final ChannelUris uris;
    private final PeerAddress address;
    private final @Nullable String udpInbox;

    private Routes(
            AeronSettings settings, ChannelUris uris, PeerAddress address, @Nullable String inbox) {
        this.settings = settings;
        this.uris = uris;
        this.address = address;
        this.udpInbox = inbox;
    }

    /**
     * Binds the UDP endpoint, unless the settings want none.
     *
     * @throws DataPlaneException naming host and port, if they cannot be bound
     */
    static Routes open(DriverRequests driver, AeronSettings settings) {
        var uris = new ChannelUris(settings);
        String inbox = null;
        String endpoint = "";
        if (settings.links().transport() != Transport.IPC) {
            inbox = uris.udpSubscription();
            endpoint = bind(driver, settings, inbox);
        }
        var address =
                new PeerAddress(
                        HostIdentity.ofThisHost(), settings.directory().toString(), endpoint);
        return new Routes(settings, uris, address, inbox);
    }

    private static String bind(DriverRequests driver, AeronSettings settings, String inbox) {
        UdpSettings udp = settings.links().udp();
        try {
            Subscription holder =
                    driver.subscription(inbox, settings.streamBase() - 1, _ -> {}, _ -> {});
            List<String> bound = holder.localSocketAddresses();
            long deadline = System.nanoTime() + BIND_NANOS;
            while (bound.isEmpty() && System.nanoTime() - deadline < 0) {
                LockSupport.parkNanos(LOOK_NANOS);
                bound = holder.localSocketAddresses();
            }
            if (bound.isEmpty()) {
                throw cannotBind(settings, "the media driver opened no socket", null);
            }
            String local = bound.getFirst();
            return udp.advertisedHost() + local.substring(local.lastIndexOf(':'));
        } catch (AeronException e) {
            throw cannotBind(settings, String.valueOf(e.getMessage()), e);
        }
    }

    private static DataPlaneException cannotBind(
            AeronSettings settings, String why, @Nullable AeronException cause) {
        UdpSettings udp = settings.links().udp();
        Path own = settings.directory();
        String holder =
                DriverDirectory.listeningOn(udp.port(), own)
                        .map(other -> "; %s has that port".formatted(DriverDirectory.owner(other)))
                        .orElse("");
        return new DataPlaneException(
                "the data plane cannot listen on UDP %s:%d for %s: %s%s; try another data-plane.port, or 0 for any"
                        .formatted(udp.host(), udp.port(), DriverDirectory.owner(own), why, holder),
                cause);
    }

    ChannelUris uris() {
        return uris;
    }

    PeerAddress address() {
        return address;
    }

    /** The channel of ranks' subscriptions over UDP. */
    String udpInbox() {
        if (udpInbox == null) {
            throw new IllegalStateException("this process has no UDP endpoint");
        }
        return udpInbox;
    }

    /**
     * Whether a rank is reached over UDP.
     *
     * @throws DataPlaneException if it cannot be reached at all
     */
    boolean usesUdp(int rank, PeerAddress there) {
        boolean sameMemory = address.sharesMemoryWith(there);
        switch (settings.links().transport()) {
            case AUTO -> {
                if (sameMemory) {
                    return false;
                }
            }
            case IPC -> {
                if (sameMemory) {
                    return false;
                }
                throw new DataPlaneException(
                        "rank %d uses another media driver, %s on %s, own %s on %s; data-plane.transport = ipc cannot reach it, try auto"
                                .formatted(
                                        rank,
                                        there.driverDirectory(),
                                        there.host(),
                                        address.driverDirectory(),
                                        address.host()));
            }
            case UDP -> {}
        }
        if (there.udpEndpoint().isEmpty()) {
            throw new DataPlaneException(
                    "rank %d on %s has no UDP endpoint; start its process with data-plane.transport = auto or udp"
                            .formatted(rank, there.host()));
        }
        return true;
    }

    /** What frames from one rank to another look like. */
    FrameForm form(boolean overUdp, int epoch, int fromRank, int toRank, int session) {
        Optional<SecretKey> key = settings.links().key();
        if (overUdp && key.isPresent()) {
            var link =
                    new SealedFrames.Link(
                            settings.runId(), settings.epoch() + epoch, fromRank, toRank, session);
            return new SealedFrames(key.get(), link);
        }
        return new PlainFrames(overUdp || settings.links().checksIpc());
    }
}
