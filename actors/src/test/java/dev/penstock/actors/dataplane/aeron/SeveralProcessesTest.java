package dev.penstock.actors.dataplane.aeron;

import static dev.penstock.actors.dataplane.aeron.TwoRanks.BACKWARD;
import static dev.penstock.actors.dataplane.aeron.TwoRanks.FORWARD;
import static dev.penstock.actors.dataplane.aeron.TwoRanks.forward;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.penstock.actors.dataplane.DriverGoneException;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.Inbound;
import dev.penstock.actors.dataplane.OfferResult;
import dev.penstock.actors.dataplane.Outbound;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(90)
class SeveralProcessesTest {
    private static final Duration START = Duration.ofSeconds(30);
    private static final int TENSOR_BYTES = 3_000_000;

    private final Queue<String> deaths = new ConcurrentLinkedQueue<>();
    private final RecordingListener heard = new RecordingListener();
    private final Arena arena = Arena.ofShared();
    private final MemorySegment slot = arena.allocate(4 << 20, 64);
    private MediaDriverProcess driver;
    private AeronDataPlane plane;
    private Endpoint rank0;
    private Process rank1;

    @BeforeEach
    void startDriverAndRanks() throws IOException {
        driver =
                MediaDriverProcess.start(
                        DriverSettings.inSharedMemory("processes-test", 8 << 20, 2),
                        START,
                        deaths::add);
        rank1 = ForkedRank.fork(driver.directory(), 10);
        plane = AeronDataPlane.start(AeronSettings.ipc(driver.directory(), 42));
        rank0 =
                plane.open(
                        0,
                        List.of(new Inbound(BACKWARD, 1, 1, List.of(slot))),
                        List.of(new Outbound(FORWARD, 1, 1)),
                        heard);
    }

    @AfterEach
    void leaveNothingBehind() throws Exception {
        rank1.destroyForcibly().waitFor(10, TimeUnit.SECONDS);
        plane.close();
        driver.close();
        arena.close();
        assertThat(driver.directory()).doesNotExist();
        assertThat(driver.directory().getParent()).doesNotExist();
        assertThat(ProcessHandle.of(driver.pid())).isEmpty();
    }

    private void sendThereAndBack(int microBatch) {
        MemorySegment tensor = arena.allocate(TENSOR_BYTES, 64);
        for (long i = 0; i < TENSOR_BYTES; i += 4) {
            tensor.set(ValueLayout.JAVA_INT, i, (int) (i * 31 + microBatch));
        }
        OfferResult result =
                await().atMost(START)
                        .pollInterval(Duration.ofMillis(1))
                        .until(
                                () -> rank0.offer(forward(microBatch), tensor),
                                answer -> answer.equals(OfferResult.SENT));
        assertThat(result).isEqualTo(OfferResult.SENT);
        FrameKey back = new FrameKey(BACKWARD, 1, microBatch, 0);
        TwoRanks.take(rank0, back);
        assertThat(slot.asSlice(0, TENSOR_BYTES).mismatch(tensor)).isEqualTo(-1);
        rank0.release(BACKWARD, 0);
    }

    /**
     * Before, while and after a second run of the same name has a driver, and after the terminal
     * interrupted the first one's, as it interrupts all processes of a run.
     */
    @Test
    void tensorsTravelBetweenProcessesWhateverTheTerminalAndOtherRunsDo() throws Exception {
        sendThereAndBack(0);
        try (MediaDriverProcess second =
                MediaDriverProcess.start(
                        DriverSettings.inSharedMemory("processes-test", 8 << 20, 2),
                        START,
                        deaths::add)) {
            assertThat(second.directory()).isNotEqualTo(driver.directory());
            sendThereAndBack(1);
        }
        Process kill = new ProcessBuilder("kill", "-INT", Long.toString(driver.pid())).start();
        assertThat(kill.waitFor(10, TimeUnit.SECONDS)).isTrue();
        for (int microBatch = 2; microBatch < 10; microBatch++) {
            sendThereAndBack(microBatch);
        }
        rank1.getOutputStream().close();

        await().atMost(START).until(() -> !heard.closedPeers.isEmpty());
        assertThat(heard.closedPeers).containsExactly(1);
        assertThat(heard.failures).isEmpty();
        assertThat(deaths).isEmpty();
    }

    @Test
    void aKilledPeerIsReported() throws Exception {
        sendThereAndBack(0);

        rank1.destroyForcibly();

        await().atMost(START).until(() -> !heard.failures.isEmpty());
        assertThat(heard.failures.peek())
                .hasMessageContaining("rank 0 lost the stream from rank 1 without its end marker");
        assertThat(rank0.offer(forward(1), slot)).isInstanceOf(OfferResult.Failed.class);
    }

    @Test
    void aKilledDriverIsReportedByItsStarterAndByItsClients() throws Exception {
        sendThereAndBack(0);

        ProcessHandle.of(driver.pid()).orElseThrow().destroyForcibly();

        await().atMost(START).until(() -> !deaths.isEmpty());
        assertThat(deaths.peek()).contains("ended with code 137");
        await().atMost(START).until(() -> !heard.failures.isEmpty());
        assertThat(heard.failures.peek())
                .isInstanceOf(DriverGoneException.class)
                .hasMessageContaining("died or stood still");
    }
}
