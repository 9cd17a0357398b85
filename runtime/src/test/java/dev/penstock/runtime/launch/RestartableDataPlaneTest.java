package dev.penstock.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.dataplane.DataPlane;
import dev.penstock.actors.dataplane.FrameFaults;
import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.dataplane.aeron.EmbeddedDriver;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.DataPlaneSection;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Other hosts are told once where a process takes their tensors. */
@Timeout(60)
class RestartableDataPlaneTest {
    @Test
    @SuppressWarnings("try") // the first driver ends before the second is used
    void behindAnotherMediaDriverAProcessIsReachedWhereItWas() {
        DataPlaneSection section =
                ConfigLoader.load(
                                Path.of("../sample-configs/quickstart.conf"),
                                List.of(
                                        "data-plane.mtu=8192",
                                        "data-plane.term-length=256 KiB",
                                        "data-plane.udp-term-length=256 KiB"))
                        .dataPlane();
        var configured = new ConfiguredDataPlane(section, "restarts", FrameFaults.NONE);
        try (EmbeddedDriver first = EmbeddedDriver.start(configured.driver(2, true));
                EmbeddedDriver second = EmbeddedDriver.start(configured.driver(2, true));
                DataPlane plane =
                        new RestartableDataPlane(
                                first.directory(),
                                (directory, former) ->
                                        configured.openBetweenHosts(
                                                directory,
                                                NodeInterface.LOOPBACK,
                                                Optional.empty(),
                                                former))) {
            PeerAddress before = plane.address();
            assertThat(before.udpPort()).isPositive();

            first.close();
            plane.relink(second.directory().toString());

            assertThat(plane.address().driverDirectory()).isEqualTo(second.directory().toString());
            assertThat(plane.address().udpEndpoint()).isEqualTo(before.udpEndpoint());
        }
    }
}
