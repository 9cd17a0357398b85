package dev.penstock.runtime.launch;

import dev.penstock.actors.dataplane.AddressText;
import dev.penstock.actors.dataplane.DataPlane;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.FrameFaults;
import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.dataplane.Transport;
import dev.penstock.actors.dataplane.aeron.AeronDataPlane;
import dev.penstock.actors.dataplane.aeron.AeronSettings;
import dev.penstock.actors.dataplane.aeron.DriverSettings;
import dev.penstock.actors.dataplane.aeron.PollerMode;
import dev.penstock.actors.dataplane.aeron.UdpSettings;
import dev.penstock.actors.dataplane.emulated.EmulatedDataPlane;
import dev.penstock.runtime.config.run.DataPlaneSection;
import dev.penstock.runtime.safetensors.Sha256;
import java.nio.file.Path;
import java.util.Optional;
import javax.crypto.SecretKey;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The data plane that a configuration asks for.
 *
 * @param runId names the run's shared memory and its streams
 * @param faults what harms frames on purpose
 */
public record ConfiguredDataPlane(DataPlaneSection section, String runId, FrameFaults faults) {
    private static final Logger LOG = LoggerFactory.getLogger(ConfiguredDataPlane.class);

    /**
     * Settings for a media driver of the run; over UDP a receiver maps a log of its own.
     *
     * @param betweenHosts whether others have a part of the ranks, so that this driver's have no
     *     more logs than all ranks would have here
     */
    public DriverSettings driver(int ranks, boolean betweenHosts) {
        boolean udp = section.transport() == DataPlaneSection.Transport.UDP;
        return DriverSettings.inSharedMemory(
                        runId,
                        udp || betweenHosts
                                ? Math.max(termLengthBytes(), udpTermLengthBytes())
                                : termLengthBytes(),
                        udp ? 4 * ranks : 2 * ranks)
                .withIdle(poller());
    }

    /** Whether ranks may be on several hosts. */
    public boolean mayCrossHosts() {
        return section.mayCrossHosts();
    }

    /**
     * Joins the media driver in this directory, which all processes of the run use.
     *
     * @param key of the run, for frames over UDP; empty on loopback only
     */
    DataPlane open(Path driverDirectory, Optional<SecretKey> key) {
        return start(
                settings(driverDirectory, NodeInterface.LOOPBACK)
                        .withLinks(
                                links ->
                                        links.transport() == Transport.AUTO
                                                ? links.withTransport(Transport.IPC)
                                                : links)
                        .withLinks(links -> key.map(links::withKey).orElse(links)));
    }

    /**
     * Joins the media driver in this directory, for a run of several hosts.
     *
     * @param here where this process listens, unless the configuration names a host
     * @param key of the run, for frames between hosts; empty if they travel in the clear
     * @param former where this process was reached before: its port is taken again, if it is free
     */
    public DataPlane openBetweenHosts(
            Path driverDirectory,
            NodeInterface here,
            Optional<SecretKey> key,
            Optional<PeerAddress> former) {
        AeronSettings settings =
                settings(driverDirectory, here)
                        .withLinks(links -> key.map(links::withKey).orElse(links));
        int port = former.map(PeerAddress::udpPort).orElse(0);
        if (section.port() != 0 || port == 0) {
            return start(settings);
        }
        try {
            return start(settings.withLinks(links -> links.withUdp(links.udp().withPort(port))));
        } catch (DataPlaneException e) {
            LOG.info("UDP port {} of before is not free: takes what there is", port, e);
            return start(settings);
        }
    }

    private DataPlane start(AeronSettings settings) {
        return EmulatedDataPlane.over(AeronDataPlane.start(settings), section.emulated());
    }

    /** Whether ranks keep sent tensors until they are verified. */
    boolean keepsSentTensors(boolean betweenHosts) {
        return betweenHosts || keepsSentTensors(section, !faults.equals(FrameFaults.NONE));
    }

    /**
     * The same for ranks of one host.
     *
     * @param harmed whether frames are harmed on purpose
     */
    static boolean keepsSentTensors(DataPlaneSection section, boolean harmed) {
        return harmed || section.crc() || section.transport() == DataPlaneSection.Transport.UDP;
    }

    private AeronSettings settings(Path driverDirectory, NodeInterface here) {
        return AeronSettings.ipc(driverDirectory, identity(runId))
                .withTermLength(termLengthBytes())
                .withMtu(mtuBytes())
                .withPoller(poller())
                .withLinks(
                        links ->
                                links.withCrc(section.crc())
                                        .withFaults(faults)
                                        .withTransport(
                                                Transport.valueOf(section.transport().name()))
                                        .withUdp(udp(here)));
    }

    /** By this, frames of other runs are refused: the first 64 bits of the SHA-256 of the id. */
    static long identity(String runId) {
        return Long.parseUnsignedLong(Sha256.of(runId).substring(0, Long.BYTES * 2), 16);
    }

    private UdpSettings udp(NodeInterface here) {
        String host = section.host().orElse(here.host());
        String advertised = section.host().isPresent() ? host : here.advertisedHost();
        return new UdpSettings(
                host,
                section.port(),
                section.advertisedHost().orElse(advertised),
                section.udpMtu().orElseGet(() -> safeDatagram(host)),
                udpTermLengthBytes(),
                Math.toIntExact(section.receiverWindow().bytes()),
                Math.toIntExact(section.socketBuffer().bytes()));
    }

    private static int safeDatagram(String host) {
        return host.equals("localhost")
                        || host.startsWith("127.")
                        || AddressText.host(host).equals("[::1]")
                ? AeronSettings.MAX_MTU
                : UdpSettings.ETHERNET_MTU;
    }

    private PollerMode poller() {
        return switch (section.poller()) {
            case ADAPTIVE -> PollerMode.ADAPTIVE;
            case SLEEPING -> PollerMode.SLEEPING;
            case SPINNING -> PollerMode.SPINNING;
        };
    }

    private int termLengthBytes() {
        return Math.toIntExact(section.termLength().bytes());
    }

    private int udpTermLengthBytes() {
        return Math.toIntExact(section.udpTermLength().bytes());
    }

    /** Aeron takes frames of at most an eighth of a term. */
    private int mtuBytes() {
        return Math.min(section.mtu(), termLengthBytes() / 8);
    }
}
