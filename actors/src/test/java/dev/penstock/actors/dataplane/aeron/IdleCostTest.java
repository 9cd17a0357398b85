package dev.penstock.actors.dataplane.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.penstock.actors.dataplane.Inbound;
import dev.penstock.actors.dataplane.Outbound;
import dev.penstock.actors.dataplane.Transport;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

@Timeout(60)
class IdleCostTest {
    private static final Logger LOG = LoggerFactory.getLogger(IdleCostTest.class);
    private static final Duration WATCHED = Duration.ofSeconds(2);

    private final ThreadMXBean threads = ManagementFactory.getThreadMXBean();

    @ParameterizedTest
    @EnumSource(
            value = Transport.class,
            names = {"IPC", "UDP"})
    void waitingForAnotherProcessCostsLittleOfACore(Transport transport) {
        try (EmbeddedDriver driver =
                        EmbeddedDriver.start(
                                DriverSettings.inSharedMemory("idle-test", 64 * 1024, 2));
                Arena arena = Arena.ofShared();
                AeronDataPlane plane =
                        AeronDataPlane.start(
                                AeronSettings.ipc(driver.directory(), 1)
                                        .withTermLength(64 * 1024)
                                        .withLinks(links -> links.withTransport(transport)))) {
            List<MemorySegment> slots = List.of(arena.allocate(64));
            plane.open(
                    0,
                    List.of(new Inbound(TwoRanks.BACKWARD, 1, 1, slots)),
                    List.of(new Outbound(TwoRanks.FORWARD, 1, 1)),
                    new RecordingListener());
            long before = cpuNanos();
            long start = System.nanoTime();

            await().pollDelay(WATCHED).atMost(WATCHED.plusSeconds(10)).until(() -> true);

            double share = (double) (cpuNanos() - before) / (System.nanoTime() - start);
            LOG.warn("{}: {} of a core", transport, share);
            assertThat(share).as("cores used by poller, client and driver").isLessThan(0.1);
        }
    }

    private long cpuNanos() {
        return Arrays.stream(threads.getThreadInfo(threads.getAllThreadIds()))
                .filter(Objects::nonNull)
                .filter(IdleCostTest::isOurs)
                .mapToLong(thread -> Math.max(0, threads.getThreadCpuTime(thread.getThreadId())))
                .sum();
    }

    private static boolean isOurs(ThreadInfo thread) {
        String name = thread.getThreadName();
        return name.equals("penstock-poller")
                || name.startsWith("aeron-")
                || name.contains("driver-conductor");
    }
}
