package dev.penstock.actors.dataplane.aeron;

import io.aeron.ChannelUriStringBuilder;
import io.aeron.CommonContext;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.StandardSocketOptions;
import java.nio.channels.DatagramChannel;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Aeron's names for the ways between ranks. */
final class ChannelUris {
    static final String IPC = CommonContext.IPC_CHANNEL;

    private static final Logger LOG = LoggerFactory.getLogger(ChannelUris.class);

    private final AeronSettings settings;
    private final UdpSettings udp;
    private final int sendBuffer;
    private final int receiveBuffer;

    /**
     * Asks the system how large sockets' buffers may be, for Aeron refuses a window that does not
     * fit the buffer.
     */
    ChannelUris(AeronSettings settings) {
        this.settings = settings;
        this.udp = settings.links().udp();
        int wanted = udp.socketBufferBytes();
        try (DatagramChannel socket = DatagramChannel.open()) {
            socket.setOption(StandardSocketOptions.SO_SNDBUF, wanted);
            socket.setOption(StandardSocketOptions.SO_RCVBUF, wanted);
            sendBuffer = Math.min(wanted, socket.getOption(StandardSocketOptions.SO_SNDBUF));
            receiveBuffer = Math.min(wanted, socket.getOption(StandardSocketOptions.SO_RCVBUF));
        } catch (IOException e) {
            throw new UncheckedIOException("cannot open a UDP socket", e);
        }
        if (Math.min(sendBuffer, receiveBuffer) < wanted) {
            LOG.info(
                    "sockets get {} and {} bytes of buffer to send and receive, not {}; raise net.core.wmem_max and net.core.rmem_max for more throughput over UDP",
                    sendBuffer,
                    receiveBuffer,
                    wanted);
        }
    }

    String ipcPublication() {
        return new ChannelUriStringBuilder(IPC)
                .termLength(settings.termLengthBytes())
                .mtu(settings.frameBytes())
                .build();
    }

    String udpPublication(String endpoint) {
        return new ChannelUriStringBuilder()
                .media(CommonContext.UDP_MEDIA)
                .endpoint(endpoint)
                .termLength(udp.termLengthBytes())
                .mtu(udp.frameBytes())
                .socketSndbufLength(sendBuffer)
                .socketRcvbufLength(receiveBuffer)
                .build();
    }

    /**
     * The run's socket on this driver: all subscriptions with the same tag share it. A process that
     * takes its port of before again has another than one that takes any, and joins the run later.
     */
    String udpSubscription() {
        long tag = (long) udp.port() << Integer.SIZE | 1L + (settings.runId() & Integer.MAX_VALUE);
        int window = Math.min(udp.receiverWindowBytes(), receiveBuffer);
        return new ChannelUriStringBuilder()
                .media(CommonContext.UDP_MEDIA)
                .endpoint(udp.host() + ":" + udp.port())
                .tags(tag, null)
                .receiverWindowLength(Math.min(window, udp.termLengthBytes() / 2))
                .socketSndbufLength(sendBuffer)
                .socketRcvbufLength(receiveBuffer)
                .build();
    }
}
