package dev.penstock.actors.dataplane.emulated;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameKind;
import dev.penstock.actors.dataplane.FrameListener;
import dev.penstock.actors.dataplane.Inbound;
import dev.penstock.actors.dataplane.Opening;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import org.junit.jupiter.api.Test;

final class DeliveriesTest implements FrameListener {
    private static final long MS = 1_000_000;
    private static final ChannelKey FORWARD = new ChannelKey(FrameKind.ACTIVATION, 0, 1);
    private static final ChannelKey MIRROR = new ChannelKey(FrameKind.MIRROR, 0, 0);
    private static final ChannelKey NEAR = new ChannelKey(FrameKind.GRADIENT, 2, 1);

    private record Task(long at, int number, Runnable run) {}

    private final PriorityQueue<Task> tasks =
            new PriorityQueue<>(Comparator.comparing(Task::at).thenComparing(Task::number));
    private int scheduled;
    private final List<String> heard = new ArrayList<>();
    private long now = 1_000 * MS;

    private final Deliveries deliveries =
            new Deliveries(
                    new EmulatedLinks(
                            new EmulatedLink(12.5e6, 20 * MS, 0),
                            List.of(List.of(1, 2)),
                            Map.of(),
                            0),
                    new Opening(
                            1,
                            0,
                            List.of(
                                    new Inbound(FORWARD, 0, 2, List.of()),
                                    new Inbound(MIRROR, 0, 2, List.of()),
                                    new Inbound(NEAR, 2, 2, List.of())),
                            List.of(),
                            Map.of()),
                    this,
                    () -> now,
                    (nanos, task) -> tasks.add(new Task(now + nanos, scheduled++, task)));

    private static FrameKey frame(ChannelKey channel, int microBatch) {
        return new FrameKey(channel, 1, microBatch, 0);
    }

    private void passUntil(long nanos) {
        while (!tasks.isEmpty() && tasks.peek().at() <= nanos) {
            Task next = tasks.remove();
            now = next.at();
            next.run().run();
        }
        now = nanos;
    }

    @Test
    void aTensorIsThereWhenItsLinkHasDeliveredIt() {
        FrameKey key = frame(FORWARD, 0);
        assertThat(deliveries.isDelivered(key)).isFalse();

        deliveries.onFrame(key, 125_000);
        passUntil(1_030 * MS - 1);
        assertThat(deliveries.isDelivered(key)).isFalse();
        assertThat(heard).isEmpty();

        passUntil(1_030 * MS);
        assertThat(deliveries.isDelivered(key)).isTrue();
        assertThat(heard).containsExactly("1030 ms: ACTIVATION 0");

        deliveries.taken(key);
        assertThat(deliveries.isDelivered(key)).isFalse();
    }

    @Test
    void allThatOneRankSendsToAnotherSharesOneLink() {
        deliveries.onFrame(frame(MIRROR, 0), 125_000);
        deliveries.onFrame(frame(FORWARD, 0), 125_000);
        deliveries.onPeerClosed(0);
        passUntil(2_000 * MS);

        assertThat(heard)
                .containsExactly("1030 ms: MIRROR 0", "1040 ms: ACTIVATION 0", "1040 ms: closed 0");
    }

    @Test
    void ranksOfOneSiteDoNotWait() {
        deliveries.onFrame(frame(NEAR, 0), 125_000);

        assertThat(heard).containsExactly("1000 ms: GRADIENT 0");
        assertThat(deliveries.isDelivered(frame(NEAR, 0))).isTrue();
        assertThat(deliveries.describe()).isEmpty();
    }

    @Test
    void whatIsUnderWayNamesItsLink() {
        assertThat(deliveries.describe()).isEmpty();

        deliveries.onFrame(frame(FORWARD, 0), 12_500_000);
        deliveries.onFrame(frame(FORWARD, 1), 12_500_000);

        assertThat(deliveries.describe())
                .contains(
                        "the emulated link from rank 0 to rank 1 (100 Mbit/s, 20 ms) delivers the"
                                + " next of 2 tensors in 1.02 s");
        passUntil(4_000 * MS);
        assertThat(deliveries.describe()).isEmpty();
    }

    @Test
    void nothingIsHeardAfterTheEnd() {
        deliveries.onFrame(frame(FORWARD, 0), 125_000);
        deliveries.close();
        passUntil(2_000 * MS);

        assertThat(heard).isEmpty();
    }

    private void hear(String what) {
        heard.add("%d ms: %s".formatted(now / MS, what));
    }

    @Override
    public void onFrame(FrameKey key) {
        hear(key.channel().kind() + " " + key.microBatch());
    }

    @Override
    public void onCredit(ChannelKey channel) {
        hear("credit");
    }

    @Override
    public void onPeerClosed(int rank) {
        hear("closed " + rank);
    }

    @Override
    public void onFailure(DataPlaneException failure) {
        hear("failure");
    }
}
