package dev.penstock.actors.dataplane.aeron;

import static dev.penstock.actors.dataplane.aeron.TwoRanks.FORWARD;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.FrameRefusal;
import dev.penstock.actors.dataplane.Opening;
import dev.penstock.actors.dataplane.Outbound;
import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.dataplane.Transport;
import dev.penstock.actors.dataplane.aeron.UnrulyProxy.Rates;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import javax.crypto.spec.SecretKeySpec;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Two media drivers, as on two hosts, and a network between them that cannot be trusted. */
@Timeout(120)
class UnrulyNetworkTest {
    private static final Logger LOG = LoggerFactory.getLogger(UnrulyNetworkTest.class);
    private static final long MINUTE = 60_000_000_000L;
    private static final int TERM = 256 * 1024;
    private static final int BYTES = 40_000;

    private EmbeddedDriver here;
    private EmbeddedDriver there;

    @BeforeEach
    void startDrivers() {
        here = EmbeddedDriver.start(DriverSettings.inSharedMemory("unruly-here", TERM, 4));
        there = EmbeddedDriver.start(DriverSettings.inSharedMemory("unruly-there", TERM, 4));
    }

    @AfterEach
    void stopDrivers() {
        here.close();
        there.close();
    }

    private static AeronSettings settings(EmbeddedDriver driver, int key) {
        UnaryOperator<LinkSettings> seal =
                links -> key == 0 ? links : links.withKey(new SecretKeySpec(keyOf(key), "AES"));
        return AeronSettings.ipc(driver.directory(), 42)
                .withTermLength(TERM)
                .withLinks(
                        links ->
                                links.withTransport(Transport.AUTO)
                                        .withUdp(
                                                UdpSettings.loopback()
                                                        .withMtu(4096)
                                                        .withTermLength(TERM)))
                .withLinks(seal);
    }

    private static byte[] keyOf(int number) {
        byte[] key = new byte[32];
        key[0] = (byte) number;
        return key;
    }

    private static PeerAddress behind(UnrulyProxy proxy, PeerAddress real) throws IOException {
        return new PeerAddress(real.host(), real.driverDirectory(), proxy.address());
    }

    @ParameterizedTest
    @CsvSource({
        "0, 0.05, 0, 0, 0",
        "0, 0, 0.2, 0, 0",
        "0, 0, 0, 0.2, 0",
        "0, 0, 0, 0, 0.03",
        "0, 0.02, 0.1, 0.1, 0.02",
        "1, 0.02, 0.1, 0.1, 0.02"
    })
    void noBitChanges(int key, double loss, double twice, double late, double flip)
            throws IOException {
        long seed = 23;
        Rates rates = new Rates(loss, twice, late, flip);
        LOG.warn("{} by seed {}, key {}", rates, seed, key);
        try (AeronDataPlane first = AeronDataPlane.start(settings(here, key));
                AeronDataPlane second = AeronDataPlane.start(settings(there, key));
                UnrulyProxy toFirst = new UnrulyProxy(first.address().udpEndpoint(), rates, seed);
                UnrulyProxy toSecond =
                        new UnrulyProxy(second.address().udpEndpoint(), rates, seed + 1);
                TwoRanks ranks =
                        new TwoRanks(
                                first,
                                Map.of(1, behind(toSecond, second.address())),
                                second,
                                Map.of(0, behind(toFirst, first.address())),
                                SteadyTraffic.CREDITS,
                                SteadyTraffic.CREDITS + 1,
                                BYTES)) {
            new SteadyTraffic(ranks, BYTES, seed).run(80, MINUTE);

            LOG.warn(
                    "lost {}, doubled {}, reordered {}, damaged {}; refused {} and {}",
                    toSecond.lost,
                    toSecond.doubled,
                    toSecond.reordered,
                    toSecond.damaged,
                    first.refusals(),
                    second.refusals());
            assertThat(toSecond.damaged.get() > 0).isEqualTo(flip > 0);
            assertThat(second.refusals().isEmpty()).isEqualTo(flip == 0);
            assertThat(first.resentFrames() > 0).isEqualTo(flip > 0);
        }
    }

    @Test
    void aPeerWithAnotherKeyIsRefusedAndDropped() throws IOException {
        try (AeronDataPlane first = AeronDataPlane.start(settings(here, 1));
                AeronDataPlane second = AeronDataPlane.start(settings(there, 2));
                TwoRanks ranks =
                        new TwoRanks(
                                first,
                                Map.of(1, second.address()),
                                second,
                                Map.of(0, first.address()),
                                2,
                                3,
                                BYTES)) {
            assertThatThrownBy(() -> new SteadyTraffic(ranks, BYTES, 1).run(1, 2_000_000_000L))
                    .isInstanceOf(AssertionError.class);

            assertThat(second.refusals()).containsOnlyKeys(FrameRefusal.CORRUPT);
            assertThat(ranks.heardByReceiver.frames).isEmpty();
            assertThat(ranks.heardByReceiver.failures).isEmpty();
        }
    }

    @Test
    void processesOfOneDriverUseSharedMemory() {
        try (AeronDataPlane first = AeronDataPlane.start(settings(here, 1));
                AeronDataPlane second = AeronDataPlane.start(settings(here, 1))) {
            assertThat(first.address()).isEqualTo(second.address());
            assertThat(first.address().sharesMemoryWith(second.address())).isTrue();
            assertThat(first.address().udpEndpoint()).matches("127\\.0\\.0\\.1:\\d+");
        }
    }

    @Test
    void aPeerThatCannotBeReachedIsNamed() {
        AeronSettings shared =
                settings(here, 0).withLinks(links -> links.withTransport(Transport.IPC));
        try (AeronDataPlane first = AeronDataPlane.start(shared);
                AeronDataPlane second = AeronDataPlane.start(settings(there, 0))) {
            PeerAddress silent = first.address();

            assertThatThrownBy(() -> open(first, 1, second.address()))
                    .isInstanceOf(DataPlaneException.class)
                    .hasMessageContaining("rank 1 uses another media driver");
            assertThatThrownBy(() -> open(second, 1, silent))
                    .isInstanceOf(DataPlaneException.class)
                    .hasMessageContaining("rank 1 on " + silent.host() + " has no UDP endpoint");
        }
    }

    @Test
    void aPortThatIsTakenIsNamed() {
        try (AeronDataPlane first = AeronDataPlane.start(settings(here, 0))) {
            String endpoint = first.address().udpEndpoint();
            int port = Integer.parseInt(endpoint.substring(endpoint.lastIndexOf(':') + 1));
            UdpSettings taken =
                    new UdpSettings("127.0.0.1", port, "127.0.0.1", 4096, TERM, 65536, 65536);

            assertThatThrownBy(
                            () ->
                                    AeronDataPlane.start(
                                            settings(there, 0)
                                                    .withLinks(links -> links.withUdp(taken))))
                    .isInstanceOf(DataPlaneException.class)
                    .hasMessageContaining("cannot listen on UDP 127.0.0.1:" + port);
        }
    }

    private static void open(AeronDataPlane plane, int peer, PeerAddress address) {
        plane.open(
                new Opening(
                        0,
                        0,
                        List.of(),
                        List.of(new Outbound(FORWARD, peer, 1)),
                        Map.of(peer, address)),
                new RecordingListener());
    }
}
