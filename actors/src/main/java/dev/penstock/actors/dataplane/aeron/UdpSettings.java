package dev.penstock.actors.dataplane.aeron;

import dev.penstock.actors.dataplane.AddressText;
import dev.penstock.actors.dataplane.DataPlaneException;
import java.util.ArrayList;
import java.util.List;

/**
 * A process's UDP endpoint and the streams that it sends.
 *
 * @param host name or address to listen on, loopback unless said otherwise
 * @param port to listen on; 0: any free one
 * @param advertisedHost what other hosts reach this one by
 * @param mtuBytes longest datagram, Aeron's header included; a multiple of 32. What the network
 *     carries in one piece is safe: 1408 on Ethernet, 8192 with jumbo frames
 * @param termLengthBytes of each stream's log; a power of two
 * @param receiverWindowBytes how much a sender may have under way; at least the product of
 *     bandwidth and round trip. The system's limit of socket buffers caps it
 * @param socketBufferBytes wanted of the system for each socket, both ways; it may give less
 */
public record UdpSettings(
        String host,
        int port,
        String advertisedHost,
        int mtuBytes,
        int termLengthBytes,
        int receiverWindowBytes,
        int socketBufferBytes) {

    /** What Ethernet carries in one piece. */
    public static final int ETHERNET_MTU = 1408;

    public UdpSettings {
        host = AddressText.host(host);
        advertisedHost = AddressText.host(advertisedHost);
        List<String> problems = new ArrayList<>();
        if (host.isBlank() || advertisedHost.isBlank()) {
            problems.add("host: expected a name or an address, got nothing");
        }
        if (port < 0 || port > 65535) {
            problems.add("port: expected 0 to 65535, got " + port);
        }
        if (receiverWindowBytes < 4096 || socketBufferBytes < 4096) {
            problems.add(
                    "receiver window and socket buffer: expected at least 4096 bytes, got %d and %d"
                            .formatted(receiverWindowBytes, socketBufferBytes));
        }
        AeronSettings.checkLog(termLengthBytes, mtuBytes, problems);
        if (!problems.isEmpty()) {
            throw new DataPlaneException("data plane over UDP: " + String.join("; ", problems));
        }
    }

    /** Any free port of this host alone; datagrams as long as they can be. */
    public static UdpSettings loopback() {
        return new UdpSettings(
                "127.0.0.1", 0, "127.0.0.1", AeronSettings.MAX_MTU, 8 << 20, 2 << 20, 2 << 20);
    }

    public UdpSettings withMtu(int bytes) {
        return new UdpSettings(
                host,
                port,
                advertisedHost,
                bytes,
                termLengthBytes,
                receiverWindowBytes,
                socketBufferBytes);
    }

    public UdpSettings withTermLength(int bytes) {
        return new UdpSettings(
                host,
                port,
                advertisedHost,
                mtuBytes,
                bytes,
                receiverWindowBytes,
                socketBufferBytes);
    }

    public UdpSettings withPort(int wanted) {
        return new UdpSettings(
                host,
                wanted,
                advertisedHost,
                mtuBytes,
                termLengthBytes,
                receiverWindowBytes,
                socketBufferBytes);
    }

    /** The longest datagram that Aeron allows with these terms. */
    int frameBytes() {
        return Math.min(mtuBytes, termLengthBytes / 8);
    }
}
