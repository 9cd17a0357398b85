package dev.penstock.actors.dataplane.emulated;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlane;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameKind;
import dev.penstock.actors.dataplane.FrameListener;
import dev.penstock.actors.dataplane.Inbound;
import dev.penstock.actors.dataplane.OfferResult;
import dev.penstock.actors.dataplane.Outbound;
import dev.penstock.actors.dataplane.aeron.AeronDataPlane;
import dev.penstock.actors.dataplane.aeron.AeronSettings;
import dev.penstock.actors.dataplane.aeron.DriverSettings;
import dev.penstock.actors.dataplane.aeron.EmbeddedDriver;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Real frames under links that are slower than they. */
@Timeout(60)
final class EmulatedDataPlaneTest {
    private static final ChannelKey FORWARD = new ChannelKey(FrameKind.ACTIVATION, 0, 1);
    private static final Duration DEADLINE = Duration.ofSeconds(20);
    private static final int TERM = 1 << 20;
    private static final int BYTES = 100_000;

    /** 2.5 MB/s: 100,000 bytes take 40 ms. */
    private static final EmulatedLink LINK = new EmulatedLink(2.5e6, 30_000_000, 0);

    private final EmbeddedDriver driver =
            EmbeddedDriver.start(DriverSettings.inSharedMemory("emulated", TERM, 4));
    private final Arena arena = Arena.ofShared();
    private final DataPlane plane =
            EmulatedDataPlane.over(
                    AeronDataPlane.start(
                            AeronSettings.ipc(driver.directory(), 42).withTermLength(TERM)),
                    EmulatedLinks.uniform(LINK, 1));

    @AfterEach
    void close() {
        plane.close();
        driver.close();
        arena.close();
    }

    @Test
    void tensorsComeInNoLessTimeThanTheirLinkNeedsAndUnchanged() {
        var heard = new Heard();
        MemorySegment slot = arena.allocate(BYTES, 64);
        MemorySegment other = arena.allocate(BYTES, 64);
        MemorySegment tensor = arena.allocate(BYTES, 64);
        tensor.fill((byte) 7);
        Endpoint sender =
                plane.open(0, List.of(), List.of(new Outbound(FORWARD, 1, 2)), new Heard());
        Endpoint receiver =
                plane.open(
                        1,
                        List.of(new Inbound(FORWARD, 0, 2, List.of(slot, other))),
                        List.of(),
                        heard);
        long begun = System.nanoTime();

        send(sender, 0, tensor);
        send(sender, 1, tensor);
        assertThat(receiver.take(key(1))).isEqualTo(-1);
        int taken =
                await().atMost(DEADLINE).until(() -> receiver.take(key(1)), found -> found >= 0);

        assertThat(System.nanoTime() - begun).isGreaterThanOrEqualTo(2 * 40_000_000 + 30_000_000);
        assertThat(receiver.take(key(0))).isNotNegative().isNotEqualTo(taken);
        assertThat(slot.get(ValueLayout.JAVA_BYTE, BYTES - 1L)).isEqualTo((byte) 7);
        await().atMost(DEADLINE).until(() -> heard.frames.size() == 2);
        assertThat(heard.frames).containsExactly(key(0), key(1));
        assertThat(receiver.traffic().getFirst().receivedBytes()).isEqualTo(2 * BYTES);
    }

    @Test
    void withoutLinksNothingIsInBetween() {
        assertThat(EmulatedDataPlane.over(plane, EmulatedLinks.NONE)).isSameAs(plane);
        assertThat(plane.carriesAll()).isTrue();
    }

    private static FrameKey key(int microBatch) {
        return new FrameKey(FORWARD, 1, microBatch, 0);
    }

    private static void send(Endpoint sender, int microBatch, MemorySegment tensor) {
        await().atMost(DEADLINE)
                .pollInterval(Duration.ofMillis(1))
                .until(() -> sender.offer(key(microBatch), tensor) instanceof OfferResult.Sent);
    }

    private static final class Heard implements FrameListener {
        private final Queue<FrameKey> frames = new ConcurrentLinkedQueue<>();

        @Override
        public void onFrame(FrameKey key) {
            frames.add(key);
        }

        @Override
        public void onCredit(ChannelKey channel) {}

        @Override
        public void onFailure(DataPlaneException failure) {
            throw failure;
        }
    }
}
