package dev.penstock.actors.dataplane.aeron;

import static dev.penstock.actors.dataplane.aeron.TwoRanks.BACKWARD;
import static dev.penstock.actors.dataplane.aeron.TwoRanks.DEADLINE;
import static dev.penstock.actors.dataplane.aeron.TwoRanks.FORWARD;
import static dev.penstock.actors.dataplane.aeron.TwoRanks.forward;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.fail;
import static org.awaitility.Awaitility.await;

import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.Inbound;
import dev.penstock.actors.dataplane.LinkTraffic;
import dev.penstock.actors.dataplane.OfferResult;
import dev.penstock.actors.dataplane.Outbound;
import dev.penstock.actors.dataplane.Transport;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import javax.crypto.SecretKey;
import javax.crypto.spec.SecretKeySpec;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(60)
class TensorTravelTest {
    private static EmbeddedDriver driver;
    private static int epochs;

    @BeforeAll
    static void startDriver() {
        driver =
                EmbeddedDriver.start(DriverSettings.inSharedMemory("travel-test", 1024 * 1024, 16));
    }

    @AfterAll
    static void stopDriver() {
        driver.close();
    }

    /** Each test has an epoch of its own, hence streams of its own. */
    private static AeronSettings settings() {
        return AeronSettings.ipc(driver.directory(), 42)
                .withTermLength(1024 * 1024)
                .withEpoch(epochs++);
    }

    /** The same over UDP, in the clear and sealed. */
    private static AeronSettings over(String way) {
        UdpSettings udp = UdpSettings.loopback().withMtu(8192).withTermLength(1024 * 1024);
        SecretKey key = new SecretKeySpec(new byte[32], "AES");
        return settings()
                .withLinks(
                        links ->
                                switch (way) {
                                    case "ipc" -> links;
                                    case "ipc with crc" -> links.withCrc(true);
                                    case "udp" -> links.withTransport(Transport.UDP).withUdp(udp);
                                    default ->
                                            links.withTransport(Transport.UDP)
                                                    .withUdp(udp)
                                                    .withKey(key);
                                });
    }

    @ParameterizedTest
    @CsvSource({
        "ipc, 4",
        "ipc, 60",
        "ipc, 65376",
        "ipc, 65377",
        "ipc, 67108864",
        "ipc with crc, 4",
        "ipc with crc, 5000000",
        "udp, 4",
        "udp, 8064",
        "udp, 8065",
        "udp, 30000000",
        "sealed, 4",
        "sealed, 8064",
        "sealed, 8065",
        "sealed, 30000000"
    })
    void tensorsOfAnySizeArriveBitEqual(String way, long bytes) {
        try (TwoRanks ranks = new TwoRanks(over(way), 1, 1, bytes)) {
            MemorySegment tensor = ranks.tensor(bytes, bytes);

            assertThat(TwoRanks.offer(ranks.sender, forward(0), tensor))
                    .isEqualTo(OfferResult.SENT);
            int slot = TwoRanks.take(ranks.receiver, forward(0));

            assertThat(ranks.slots.get(slot).mismatch(tensor)).isEqualTo(-1);
            assertThat(ranks.heardByReceiver.frames).containsExactly(forward(0));
        }
    }

    @ParameterizedTest
    @EnumSource(PollerMode.class)
    void tensorsAreTakenInAnyOrder(PollerMode mode) {
        try (TwoRanks ranks = new TwoRanks(settings().withPoller(mode), 4, 4, 200_000)) {
            List<MemorySegment> tensors = new ArrayList<>();
            for (int microBatch = 0; microBatch < 4; microBatch++) {
                tensors.add(ranks.tensor(150_000 + microBatch, microBatch));
                TwoRanks.offer(ranks.sender, forward(microBatch), tensors.get(microBatch));
            }

            for (int microBatch : new int[] {2, 0, 3, 1}) {
                MemorySegment sent = tensors.get(microBatch);
                int slot = TwoRanks.take(ranks.receiver, forward(microBatch));
                MemorySegment received = ranks.slots.get(slot).asSlice(0, sent.byteSize());
                assertThat(received.mismatch(sent)).isEqualTo(-1);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"ipc", "udp", "sealed"})
    void bothDirectionsCarryTensorsAtOnce(String way) {
        try (TwoRanks ranks = new TwoRanks(over(way), 1, 1, 5 << 20)) {
            MemorySegment there = ranks.tensor(5 << 20, 1);
            MemorySegment back = ranks.tensor(5 << 20, 2);
            FrameKey backKey = new FrameKey(BACKWARD, 1, 0, 0);

            TwoRanks.offer(ranks.sender, forward(0), there);
            TwoRanks.offer(ranks.receiver, backKey, back);

            int slot = TwoRanks.take(ranks.receiver, forward(0));
            assertThat(ranks.slots.get(slot).mismatch(there)).isEqualTo(-1);
            assertThat(TwoRanks.take(ranks.sender, backKey)).isZero();
        }
    }

    @Test
    void aTensorWithoutCreditStaysWithTheSenderUntilOneIsTaken() {
        try (TwoRanks ranks = new TwoRanks(settings(), 2, 3, 4096)) {
            MemorySegment tensor = ranks.tensor(4096, 7);
            TwoRanks.offer(ranks.sender, forward(0), tensor);
            TwoRanks.offer(ranks.sender, forward(1), tensor);

            assertThat(ranks.sender.credits(FORWARD)).isZero();
            assertThat(ranks.sender.offer(forward(2), tensor)).isEqualTo(OfferResult.NO_CREDIT);
            assertThat(ranks.sender.offer(forward(2), tensor)).isEqualTo(OfferResult.NO_CREDIT);

            int slot = TwoRanks.take(ranks.receiver, forward(0));
            await().atMost(DEADLINE).until(() -> !ranks.heardBySender.credits.isEmpty());

            assertThat(ranks.heardBySender.credits).containsExactly(FORWARD);
            assertThat(TwoRanks.offer(ranks.sender, forward(2), tensor))
                    .isEqualTo(OfferResult.SENT);
            assertThat(TwoRanks.take(ranks.receiver, forward(2))).isNotEqualTo(slot);
            assertThat(ranks.sender.traffic())
                    .as("one tensor waited, however often it was offered")
                    .containsExactly(new LinkTraffic(1, 3 * 4096, 0, 0, 1, 0, 0));
            assertThat(ranks.receiver.traffic())
                    .containsExactly(new LinkTraffic(0, 0, 3 * 4096, 0, 0, 0, 0));
        }
    }

    @Test
    void holdingMoreSlotsThanAnnouncedDelaysTheCreditUntilRelease() {
        try (TwoRanks ranks = new TwoRanks(settings(), 1, 1, 64)) {
            MemorySegment tensor = ranks.tensor(64, 7);
            TwoRanks.offer(ranks.sender, forward(0), tensor);
            int slot = TwoRanks.take(ranks.receiver, forward(0));

            assertThat(ranks.sender.offer(forward(1), tensor)).isEqualTo(OfferResult.NO_CREDIT);

            ranks.receiver.release(FORWARD, slot);
            await().atMost(DEADLINE).until(() -> ranks.sender.credits(FORWARD) == 1);
            TwoRanks.offer(ranks.sender, forward(1), tensor);
            assertThat(TwoRanks.take(ranks.receiver, forward(1))).isEqualTo(slot);
        }
    }

    @Test
    void aBigTensorGoesOnWhereBackPressureStoppedIt() {
        try (TwoRanks ranks = new TwoRanks(settings(), 1, 1, 32 << 20)) {
            MemorySegment tensor = ranks.tensor(32 << 20, 3);
            int pauses = 0;
            OfferResult result = ranks.sender.offer(forward(0), tensor);
            while (result instanceof OfferResult.BackPressured(boolean connected)) {
                pauses += connected ? 1 : 0;
                assertThat(ranks.receiver.take(forward(0))).isEqualTo(-1);
                result = ranks.sender.offer(forward(0), tensor);
            }

            int slot = TwoRanks.take(ranks.receiver, forward(0));

            assertThat(pauses).as("a log of 1 MiB cannot hold 32 MiB").isPositive();
            assertThat(ranks.slots.get(slot).mismatch(tensor)).isEqualTo(-1);
        }
    }

    /** Round the log some hundred times; a tensor over UDP costs ten of those in shared memory. */
    @ParameterizedTest
    @CsvSource({"ipc, 5000", "ipc with crc, 5000", "udp, 2000", "sealed, 2000"})
    void thousandsOfTensorsArriveInOrderOfSending(String way, int tensors) {
        try (TwoRanks ranks = new TwoRanks(over(way), 3, 4, 70_000)) {
            MemorySegment tensor = ranks.tensor(70_000, 9);
            int sent = 0;
            int taken = 0;
            long deadline = System.nanoTime() + DEADLINE.toNanos();
            while (taken < tensors) {
                if (System.nanoTime() > deadline) {
                    fail(
                            "%d sent, %d taken%n%s%n%s"
                                    .formatted(
                                            sent,
                                            taken,
                                            ranks.sender.describe(),
                                            ranks.receiver.describe()));
                }
                int before = sent + taken;
                if (sent < tensors
                        && ranks.sender.offer(forward(sent), tensor).equals(OfferResult.SENT)) {
                    sent++;
                }
                int slot = ranks.receiver.take(forward(taken));
                if (slot >= 0) {
                    ranks.receiver.release(FORWARD, slot);
                    taken++;
                }
                if (sent + taken == before) {
                    Thread.yield(); // to those who carry them
                }
            }

            assertThat(ranks.plane.refusals()).isEmpty();
            assertThat(ranks.heardByReceiver.frames).hasSize(tensors);
        }
    }

    @Test
    void misuseIsRefusedInWords() {
        try (TwoRanks ranks = new TwoRanks(settings(), 1, 1, 64)) {
            assertThatThrownBy(() -> ranks.receiver.release(FORWARD, 0))
                    .isInstanceOf(DataPlaneException.class)
                    .hasMessageContaining("expected a held slot");
            assertThatThrownBy(() -> ranks.receiver.offer(forward(0), ranks.slots.getFirst()))
                    .hasMessageContaining("rank 1 has no outbound channel activation 0->1");
            assertThatThrownBy(
                            () ->
                                    ranks.plane.open(
                                            2,
                                            List.of(new Inbound(FORWARD, 0, 0, List.of())),
                                            List.of(new Outbound(BACKWARD, 1, 0)),
                                            ranks.heardBySender))
                    .hasMessageContaining("inbound activation 0->1: expected at least 1 credit")
                    .hasMessageContaining("outbound gradient 1->0: expected at least 1 credit");
        }
    }

    @Test
    void theStallReportNamesWhatLiesWhere() {
        try (TwoRanks ranks = new TwoRanks(settings(), 1, 2, 64)) {
            TwoRanks.offer(ranks.sender, forward(5), ranks.tensor(64, 1));
            await().atMost(DEADLINE).until(() -> !ranks.heardByReceiver.frames.isEmpty());

            assertThat(ranks.sender.describe())
                    .contains("rank 0 to rank 1 activation 0->1, idle, 0 of 1 credits left");
            assertThat(ranks.receiver.describe())
                    .contains(
                            "rank 1 from rank 0 activation 0->1, arrived (step 1, micro-batch 5,"
                                    + " slice 0), 1 of 2 slots free");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"ipc", "udp", "sealed"})
    void closingTellsThePeerInGoodOrder(String way) {
        try (TwoRanks ranks = new TwoRanks(over(way), 1, 1, 64)) {
            TwoRanks.offer(ranks.sender, forward(0), ranks.slots.getFirst());

            ranks.sender.close();

            await().atMost(DEADLINE).until(() -> !ranks.heardByReceiver.closedPeers.isEmpty());
            assertThat(ranks.heardByReceiver.closedPeers).containsExactly(0);
            assertThat(ranks.heardByReceiver.failures).isEmpty();
            assertThat(ranks.sender.offer(forward(0), ranks.slots.getFirst()))
                    .isInstanceOf(OfferResult.Failed.class);
        }
    }
}
