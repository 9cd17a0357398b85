package dev.penstock.actors.dataplane.emulated;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameKind;
import org.junit.jupiter.api.Test;

final class LinkQueueTest {
    private static final long MS = 1_000_000;

    /** 100 Mbit/s: 80 ns a byte. */
    private static final double BYTES_PER_SECOND = 12.5e6;

    private static FrameKey tensor(int microBatch) {
        return new FrameKey(new ChannelKey(FrameKind.ACTIVATION, 0, 1), 1, microBatch, 0);
    }

    @Test
    void aTensorTakesItsBytesAndTheLatency() {
        var queue = new LinkQueue(new EmulatedLink(BYTES_PER_SECOND, 20 * MS, 0), 1);

        assertThat(queue.send(tensor(0), 125_000, 500)).isEqualTo(500 + 10 * MS + 20 * MS);
    }

    @Test
    void tensorsLeaveOneAfterAnotherAndTheirLatenciesOverlap() {
        var queue = new LinkQueue(new EmulatedLink(BYTES_PER_SECOND, 20 * MS, 0), 1);

        assertThat(queue.send(tensor(0), 125_000, 0)).isEqualTo(30 * MS);
        assertThat(queue.send(tensor(1), 12_500, 3 * MS)).isEqualTo(31 * MS);
        assertThat(queue.freeAt(5 * MS)).isEqualTo(11 * MS);
        assertThat(queue.send(tensor(2), 12_500, 15 * MS)).isEqualTo(36 * MS);
    }

    @Test
    void clocksMayCountFromAnywhere() {
        var queue = new LinkQueue(new EmulatedLink(BYTES_PER_SECOND, 0, 0), 1);
        long start = Long.MAX_VALUE - MS;

        long first = queue.send(tensor(0), 12_500, start);
        long second = queue.send(tensor(1), 12_500, start + MS / 2);

        assertThat(first - start).isEqualTo(MS);
        assertThat(second - start).isEqualTo(2 * MS);
    }

    @Test
    void withoutALimitOfBandwidthOnlyTheLatencyCounts() {
        var queue = new LinkQueue(new EmulatedLink(Double.POSITIVE_INFINITY, 7 * MS, 0), 1);

        assertThat(queue.send(tensor(0), 1L << 40, 0)).isEqualTo(7 * MS);
        assertThat(queue.send(tensor(1), 1L << 40, 0)).isEqualTo(7 * MS);
    }

    @Test
    void lostFramesCostARoundTripAndTheirOwnTime() {
        var link = new EmulatedLink(BYTES_PER_SECOND, 20 * MS, 0.02);
        long bytes = 100L * EmulatedLink.FRAME_BYTES;
        long frame = link.nanos(EmulatedLink.FRAME_BYTES);
        long whole = link.nanos(bytes) + link.latencyNanos();

        long rounds = 0;
        long extra = 0;
        for (int i = 0; i < 1_000; i++) {
            long late = new LinkQueue(link, 7).send(tensor(i), bytes, 0) - whole;
            long roundTrips = late / (40 * MS);
            assertThat((late - roundTrips * 40 * MS) % frame).isBetween(0L, roundTrips);
            rounds += roundTrips;
            extra += (late - roundTrips * 40 * MS) / frame;
        }

        // a frame is sent 1/(1 - p) times on average: 100 p / (1 - p) = 2.04 more a tensor
        assertThat(extra / 1_000.0).isBetween(1.9, 2.2);
        // some frame of 100 is lost with 1 - 0.98^100 = 0.867, some of the repeated ones seldom
        assertThat(rounds / 1_000.0).isBetween(0.85, 0.95);
    }

    @Test
    void whichFramesAreLostDependsOnTheSeedAndTheTensorAlone() {
        var link = new EmulatedLink(BYTES_PER_SECOND, 20 * MS, 0.5);
        long alone = new LinkQueue(link, 7).send(tensor(3), 100_000, 0);
        var queue = new LinkQueue(link, 7);
        long before = queue.send(tensor(2), 100_000, 0);

        assertThat(queue.send(tensor(3), 100_000, before)).isEqualTo(before + alone);
        assertThat(new LinkQueue(link, 8).send(tensor(3), 100_000, 0)).isNotEqualTo(alone);
    }

    @Test
    void aLinkIsDescribedInItsUnits() {
        assertThat(new EmulatedLink(BYTES_PER_SECOND, 20 * MS, 0.01))
                .hasToString("100 Mbit/s, 20 ms, 1 % lost");
        assertThat(new EmulatedLink(1.25e9, 1_500_000, 0.001))
                .hasToString("10 Gbit/s, 1.5 ms, 0.1 % lost");
        assertThat(EmulatedLink.NONE).hasToString("no limit");
        assertThatThrownBy(() -> new EmulatedLink(0, 0, 0))
                .hasMessageContaining("a bandwidth above 0");
    }
}
