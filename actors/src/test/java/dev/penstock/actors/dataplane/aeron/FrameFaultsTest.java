package dev.penstock.actors.dataplane.aeron;

import static dev.penstock.actors.dataplane.aeron.TwoRanks.DEADLINE;
import static dev.penstock.actors.dataplane.aeron.TwoRanks.forward;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.penstock.actors.dataplane.FrameFaults;
import dev.penstock.actors.dataplane.FrameFaults.Fate;
import dev.penstock.actors.dataplane.FrameRefusal;
import dev.penstock.actors.dataplane.Transport;
import java.util.Map;
import javax.crypto.spec.SecretKeySpec;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What happens to harmed frames is made good, and the tensors' bits never change. */
@Timeout(120)
class FrameFaultsTest {
    private static final Logger LOG = LoggerFactory.getLogger(FrameFaultsTest.class);
    private static final long MINUTE = 60_000_000_000L;
    private static EmbeddedDriver driver;
    private static int epochs;

    @BeforeAll
    static void startDriver() {
        driver = EmbeddedDriver.start(DriverSettings.inSharedMemory("faults-test", 256 * 1024, 8));
    }

    @AfterAll
    static void stopDriver() {
        driver.close();
    }

    private static AeronSettings settings(String way, FrameFaults faults) {
        return AeronSettings.ipc(driver.directory(), 42)
                .withTermLength(256 * 1024)
                .withMtu(4096)
                .withEpoch(epochs++)
                .withLinks(
                        links -> {
                            LinkSettings harmed = links.withFaults(faults);
                            LinkSettings udp =
                                    harmed.withTransport(Transport.UDP)
                                            .withUdp(
                                                    UdpSettings.loopback()
                                                            .withMtu(4096)
                                                            .withTermLength(256 * 1024));
                            return switch (way) {
                                case "ipc" -> harmed;
                                case "udp" -> udp;
                                default -> udp.withKey(new SecretKeySpec(new byte[32], "AES"));
                            };
                        });
    }

    @ParameterizedTest
    @CsvSource({
        "ipc, 0.05, 0, 0, 0",
        "ipc, 0, 0.2, 0, 0",
        "ipc, 0, 0, 0.05, 0",
        "ipc, 0, 0, 0, 0.2",
        "ipc, 0.02, 0.05, 0.03, 0.05",
        "udp, 0.02, 0.05, 0.03, 0.05",
        "sealed, 0.02, 0.05, 0.03, 0.05"
    })
    void harmedFramesAreMadeGood(
            String way, double drop, double duplicate, double corrupt, double delay) {
        long seed = 7;
        var faults = new RandomFrameFaults(seed, drop, duplicate, corrupt, delay, 300_000);
        LOG.warn("{} {}", way, faults);
        try (TwoRanks ranks =
                new TwoRanks(
                        settings(way, faults),
                        SteadyTraffic.CREDITS,
                        SteadyTraffic.CREDITS + 1,
                        40_000)) {
            new SteadyTraffic(ranks, 40_000, seed).run(150, MINUTE);

            Map<FrameRefusal, Long> refused = ranks.plane.refusals();
            assertThat(refused.containsKey(FrameRefusal.CORRUPT)).isEqualTo(corrupt > 0);
            assertThat(ranks.plane.resentFrames() > 0).isEqualTo(drop + corrupt > 0);
            assertThat(
                            ranks.sender.traffic().getFirst().corruptFrames()
                                    + ranks.receiver.traffic().getFirst().corruptFrames())
                    .isEqualTo(refused.getOrDefault(FrameRefusal.CORRUPT, 0L));
            if (duplicate > 0) {
                assertThat(refused).containsKey(FrameRefusal.DUPLICATE);
            }
            if (drop + duplicate + corrupt == 0) {
                assertThat(refused).isEmpty();
            }
        }
    }

    @Test
    void aLostLastFrameIsMissedByTheSender() {
        FrameFaults lastOfTheFirst = (key, frame) -> frame == 4 ? Fate.DROP : Fate.PASS;
        try (TwoRanks ranks = new TwoRanks(settings("udp", lastOfTheFirst), 1, 1, 20_000)) {
            TwoRanks.offer(ranks.sender, forward(0), ranks.tensor(19_000, 3));

            int slot = TwoRanks.take(ranks.receiver, forward(0));

            assertThat(ranks.slots.get(slot).asSlice(0, 19_000).mismatch(ranks.tensor(19_000, 3)))
                    .isEqualTo(-1);
            assertThat(ranks.plane.resentFrames()).isEqualTo(1);
            assertThat(ranks.sender.traffic().getFirst().resentFrames()).isEqualTo(1);
            assertThat(ranks.receiver.traffic().getFirst().receivedBytes()).isEqualTo(19_000);
        }
    }

    @Test
    void aChunkThatIsDamagedAgainAndAgainEndsTheLinkInWords() {
        FrameFaults third = (key, frame) -> frame >= 2 ? Fate.CORRUPT : Fate.PASS;
        try (TwoRanks ranks = new TwoRanks(settings("udp", third), 1, 1, 20_000)) {
            TwoRanks.offer(ranks.sender, forward(5), ranks.tensor(19_000, 3));

            await().atMost(DEADLINE).until(() -> !ranks.heardByReceiver.failures.isEmpty());

            assertThat(ranks.heardByReceiver.failures.peek())
                    .hasMessageContaining(
                            "rank 1 received (step 1, micro-batch 5, slice 0) on activation 0->1"
                                    + " from rank 0 damaged 8 times");
        }
    }

    @Test
    void aSeedRepeatsWhatItDid() {
        var faults = new RandomFrameFaults(5, 0.1, 0.1, 0.1, 0.1, 1000);
        int dropped = 0;
        for (int frame = 0; frame < 100_000; frame++) {
            Fate fate = faults.of(forward(frame), frame);
            assertThat(fate).isEqualTo(faults.of(forward(0), frame));
            dropped += fate.equals(Fate.DROP) ? 1 : 0;
        }
        assertThat(dropped).isBetween(9_700, 10_300);
        assertThatThrownBy(() -> new RandomFrameFaults(5, 0.5, 0.6, 0, 0, 0))
                .hasMessageContaining("together at most 1");
    }
}
