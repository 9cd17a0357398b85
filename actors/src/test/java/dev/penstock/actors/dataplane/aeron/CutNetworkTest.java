package dev.penstock.actors.dataplane.aeron;

import static dev.penstock.actors.dataplane.aeron.TwoRanks.forward;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.penstock.actors.dataplane.OfferResult;
import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.dataplane.Transport;
import java.io.IOException;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Two hosts whose network is cut in both directions, as a black hole between them does it. */
@Timeout(90)
class CutNetworkTest {
    private static final int TERM = 256 * 1024;
    private static final int BYTES = 40_000;
    private static final int CREDITS = SteadyTraffic.CREDITS;
    private static final long SEED = 29;
    private static final long MINUTE = 60_000_000_000L;
    private static final UnrulyProxy.Rates NO_HARM = new UnrulyProxy.Rates(0, 0, 0, 0);

    private EmbeddedDriver here;
    private EmbeddedDriver there;

    @BeforeEach
    void startDrivers() {
        here = EmbeddedDriver.start(DriverSettings.inSharedMemory("cut-here", TERM, 4));
        there = EmbeddedDriver.start(DriverSettings.inSharedMemory("cut-there", TERM, 4));
    }

    @AfterEach
    void stopDrivers() {
        here.close();
        there.close();
    }

    @Test
    void bothSidesHearOfItNothingComesThroughLateAndTheNextEpochGoesOn() throws IOException {
        try (AeronDataPlane first = AeronDataPlane.start(settings(here));
                AeronDataPlane second = AeronDataPlane.start(settings(there));
                UnrulyProxy toFirst =
                        new UnrulyProxy(first.address().udpEndpoint(), NO_HARM, SEED);
                UnrulyProxy toSecond =
                        new UnrulyProxy(second.address().udpEndpoint(), NO_HARM, SEED)) {
            Map<Integer, PeerAddress> of1 = Map.of(1, behind(toSecond, second.address()));
            Map<Integer, PeerAddress> of0 = Map.of(0, behind(toFirst, first.address()));
            TwoRanks before = new TwoRanks(first, of1, second, of0, CREDITS, CREDITS + 1, BYTES);
            new SteadyTraffic(before, BYTES, SEED).run(20, MINUTE);
            int arrived = before.heardByReceiver.frames.size();

            toFirst.cut(true);
            toSecond.cut(true);
            OfferResult offered = before.sender.offer(forward(20), before.tensor(BYTES, SEED));

            assertThat(offered).isNotInstanceOf(OfferResult.Failed.class); // nobody knows yet
            await().atMost(Duration.ofSeconds(30))
                    .until(
                            () ->
                                    !before.heardBySender.failures.isEmpty()
                                            && !before.heardByReceiver.failures.isEmpty());
            assertThat(before.sender.offer(forward(20), before.tensor(BYTES, SEED)))
                    .isInstanceOf(OfferResult.Failed.class);

            toFirst.cut(false);
            toSecond.cut(false);
            before.sender.close();
            before.receiver.close();
            try (TwoRanks after =
                    new TwoRanks(1, first, of1, second, of0, CREDITS, CREDITS + 1, BYTES)) {
                new SteadyTraffic(after, BYTES, SEED + 1).run(20, MINUTE);
            }
            assertThat(before.heardByReceiver.frames).hasSize(arrived);
            before.arena.close();
        }
    }

    private static AeronSettings settings(EmbeddedDriver driver) {
        return AeronSettings.ipc(driver.directory(), 42)
                .withTermLength(TERM)
                .withLinks(
                        links ->
                                links.withTransport(Transport.AUTO)
                                        .withUdp(
                                                UdpSettings.loopback()
                                                        .withMtu(4096)
                                                        .withTermLength(TERM)));
    }

    private static PeerAddress behind(UnrulyProxy proxy, PeerAddress real) throws IOException {
        return new PeerAddress(real.host(), real.driverDirectory(), proxy.address());
    }
}
