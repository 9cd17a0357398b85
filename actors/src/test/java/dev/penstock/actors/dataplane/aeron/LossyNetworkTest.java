package dev.penstock.actors.dataplane.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.dataplane.Transport;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ext.DebugReceiveChannelEndpoint;
import io.aeron.driver.ext.DebugSendChannelEndpoint;
import io.aeron.driver.ext.LossGenerator;
import io.aeron.driver.ext.RandomLossGenerator;
import java.nio.file.Path;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Datagrams are lost by Aeron's own generators, of data and of its control messages alike. */
@Timeout(120)
class LossyNetworkTest {
    private static final Logger LOG = LoggerFactory.getLogger(LossyNetworkTest.class);
    private static final long MINUTE = 60_000_000_000L;
    private static final int TERM = 256 * 1024;

    @ParameterizedTest
    @ValueSource(doubles = {0.01, 0.05, 0.2})
    void lostDatagramsChangeNoBit(double loss) {
        long seed = 11;
        LOG.warn("loss {} by seed {}", loss, seed);
        Path directory = DriverDirectory.create(DriverDirectory.sharedMemory(), "lossy-test");
        try (MediaDriver driver = MediaDriver.launch(lossy(directory, loss, seed))) {
            AeronSettings settings =
                    AeronSettings.ipc(driver.context().aeronDirectory().toPath(), 42)
                            .withTermLength(TERM)
                            .withLinks(
                                    links ->
                                            links.withTransport(Transport.UDP)
                                                    .withUdp(
                                                            UdpSettings.loopback()
                                                                    .withMtu(1408)
                                                                    .withTermLength(TERM)));
            int credits = SteadyTraffic.CREDITS;
            try (TwoRanks ranks = new TwoRanks(settings, credits, credits + 1, 40_000)) {
                new SteadyTraffic(ranks, 40_000, seed).run(60, MINUTE);

                assertThat(ranks.plane.refusals()).isEmpty();
                assertThat(ranks.plane.resentFrames()).isZero();
            }
        } finally {
            DriverDirectory.delete(directory);
        }
    }

    private static MediaDriver.Context lossy(Path directory, double loss, long seed) {
        return DriverContexts.of(directory, TERM, PollerMode.ADAPTIVE, 4)
                .sendChannelEndpointSupplier(
                        (channel, status, context) ->
                                new DebugSendChannelEndpoint(
                                        channel,
                                        status,
                                        context,
                                        generator(loss, seed),
                                        generator(loss, seed + 1)))
                .receiveChannelEndpointSupplier(
                        (channel, dispatcher, status, context) ->
                                new DebugReceiveChannelEndpoint(
                                        channel,
                                        dispatcher,
                                        status,
                                        context,
                                        generator(loss, seed + 2),
                                        generator(loss, seed + 3)));
    }

    private static LossGenerator generator(double loss, long seed) {
        return new RandomLossGenerator(loss, seed);
    }
}
