package dev.penstock.actors.dataplane.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.dataplane.Transport;
import java.net.DatagramSocket;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Where a host takes tensors of others: which addresses, whose ports. */
@Timeout(90)
class UdpEndpointTest {
    private static final int TERM = 256 * 1024;
    private static final int BYTES = 40_000;
    private static final long MINUTE = 60_000_000_000L;

    private EmbeddedDriver here;
    private EmbeddedDriver there;

    @BeforeEach
    void startDrivers() {
        here = EmbeddedDriver.start(DriverSettings.inSharedMemory("porthere", TERM, 4));
        there = EmbeddedDriver.start(DriverSettings.inSharedMemory("portthere", TERM, 4));
    }

    @AfterEach
    void stopDrivers() {
        here.close();
        there.close();
    }

    @Test
    void tensorsTravelBetweenAddressesOfTheLongKind() throws Exception {
        Assumptions.assumeTrue(
                NetworkInterface.networkInterfaces()
                        .flatMap(NetworkInterface::inetAddresses)
                        .anyMatch(each -> each instanceof Inet6Address && each.isLoopbackAddress()),
                "this machine has no ::1");
        var udp = UdpSettings.loopback();
        var six =
                new UdpSettings(
                        "::1",
                        0,
                        "::1",
                        8192,
                        TERM,
                        udp.receiverWindowBytes(),
                        udp.socketBufferBytes());
        try (AeronDataPlane first = AeronDataPlane.start(settings(here, six));
                AeronDataPlane second = AeronDataPlane.start(settings(there, six))) {
            assertThat(first.address().udpEndpoint()).startsWith("[::1]:");
            Map<Integer, PeerAddress> of1 = Map.of(1, second.address());
            Map<Integer, PeerAddress> of0 = Map.of(0, first.address());
            int credits = SteadyTraffic.CREDITS;
            TwoRanks ranks = new TwoRanks(first, of1, second, of0, credits, credits + 1, BYTES);

            new SteadyTraffic(ranks, BYTES, 3).run(20, MINUTE);

            assertThat(ranks.heardByReceiver.frames).hasSizeGreaterThanOrEqualTo(20);
        }
    }

    @Test
    void twoRunsWithOnePortAreBothNamed() {
        try (AeronDataPlane first =
                AeronDataPlane.start(settings(here, UdpSettings.loopback().withTermLength(TERM)))) {
            UdpSettings same =
                    UdpSettings.loopback().withTermLength(TERM).withPort(first.address().udpPort());

            assertThatThrownBy(() -> AeronDataPlane.start(settings(there, same)))
                    .isInstanceOf(DataPlaneException.class)
                    .hasMessageContaining("127.0.0.1:" + first.address().udpPort())
                    .hasMessageContaining("for run portthere (process ")
                    .hasMessageContaining("; run porthere (process ")
                    .hasMessageContaining("has that port; try another data-plane.port");
        }
    }

    /** Its host's driver died, and a node joined afterwards. */
    @Test
    void aProcessListensBesideOneThatHasItsPortOfBefore() throws Exception {
        UdpSettings any = UdpSettings.loopback().withTermLength(TERM);
        int port;
        try (var free = new DatagramSocket(0, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
        }

        try (AeronDataPlane again = AeronDataPlane.start(settings(here, any.withPort(port)));
                AeronDataPlane joined = AeronDataPlane.start(settings(here, any));
                AeronDataPlane next = AeronDataPlane.start(settings(here, any))) {
            assertThat(again.address().udpPort()).isEqualTo(port);
            assertThat(joined.address().udpPort()).isNotEqualTo(port);
            assertThat(next.address().udpPort())
                    .as("a run's processes on a host share a port")
                    .isEqualTo(joined.address().udpPort());
        }
    }

    private static AeronSettings settings(EmbeddedDriver driver, UdpSettings udp) {
        return AeronSettings.ipc(driver.directory(), 7)
                .withTermLength(TERM)
                .withLinks(links -> links.withTransport(Transport.UDP).withUdp(udp));
    }
}
