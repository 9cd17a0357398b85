package dev.penstock.actors.dataplane.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.driver.DefaultNameResolver;
import io.aeron.driver.MediaDriver;
import io.aeron.exceptions.AeronException;
import io.aeron.exceptions.DriverTimeoutException;
import io.aeron.exceptions.RegistrationException;
import java.net.InetAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class DriverRequestsTest {
    /** For a name; the driver looks it up twice. */
    private static final Duration TIME_OF_ONE = Duration.ofMillis(400);

    private static final Duration DEADLINE = Duration.ofSeconds(20);
    private static final Duration LINGER = Duration.ofMillis(100);
    private static final int MANY = 7;
    private static final int TERM = 64 * 1024;

    @TempDir private Path parent;

    private final CountDownLatch neverHasBegun = new CountDownLatch(1);
    private final CountDownLatch neverEnds = new CountDownLatch(1);
    private MediaDriver driver;
    private Aeron client;
    private DriverRequests requests;

    /** A driver that takes its time for every name, and has no answer for one. */
    @BeforeEach
    void startDriver() {
        driver = MediaDriver.launch(slowDriver("driver"));
        client = connect(driver);
        requests = new DriverRequests(client, DriverRequests.PATIENCE);
    }

    private MediaDriver.Context slowDriver(String name) {
        return DriverContexts.of(parent.resolve(name), TERM, PollerMode.ADAPTIVE, 2)
                .publicationLingerTimeoutNs(LINGER.toNanos())
                .nameResolver(new SlowNames());
    }

    private static Aeron connect(MediaDriver driver) {
        return Aeron.connect(
                new Aeron.Context()
                        .aeronDirectoryName(driver.aeronDirectoryName())
                        .driverTimeoutMs(AeronDataPlane.DRIVER_TIMEOUT.toMillis())
                        .errorHandler(_ -> {}));
    }

    @AfterEach
    void stopDriver() {
        neverEnds.countDown();
        client.close();
        driver.close();
    }

    private final class SlowNames extends DefaultNameResolver {
        @Override
        public InetAddress resolve(String name, String parameter, boolean again) {
            try {
                if (name.equals("never.test")) {
                    neverHasBegun.countDown();
                    var _ = neverEnds.await(1, TimeUnit.MINUTES);
                }
                Thread.sleep(TIME_OF_ONE);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            return InetAddress.getLoopbackAddress();
        }
    }

    private static String named(String name) {
        return "aeron:udp?endpoint=%s:40456".formatted(name);
    }

    @Test
    void theLastOfManyAnswersMayTakeLongerThanADriverMayBeSilent() {
        List<CompletableFuture<ExclusivePublication>> asked =
                IntStream.range(0, MANY)
                        .mapToObj(i -> ask(requests, "slow%d.test".formatted(i)))
                        .toList();

        assertThat(asked).allSatisfy(one -> assertThat(one.join().isClosed()).isFalse());
    }

    private static CompletableFuture<ExclusivePublication> ask(DriverRequests driver, String name) {
        return CompletableFuture.supplyAsync(
                () -> driver.publication(named(name), 1),
                task -> Thread.ofPlatform().daemon().start(task));
    }

    @Test
    void aRefusalIsSaidAtOnce() {
        assertThatThrownBy(() -> requests.publication("aeron:ipc?term-length=7", 1))
                .isInstanceOf(RegistrationException.class)
                .hasMessageContaining("7");
    }

    @Test
    void nobodyWaitsForADriverThatIsGone() throws InterruptedException {
        // one that looks names up on its own thread, and so stops there
        try (var stopped = MediaDriver.launch(slowDriver("stopped").asyncExecutorEnabled(false));
                Aeron itsClient = connect(stopped)) {
            var itsRequests = new DriverRequests(itsClient, DriverRequests.PATIENCE);
            CompletableFuture<ExclusivePublication> waiting = ask(itsRequests, "never.test");
            assertThat(neverHasBegun.await(DEADLINE.toSeconds(), TimeUnit.SECONDS)).isTrue();

            assertThatThrownBy(waiting::join)
                    .hasCauseInstanceOf(AeronException.class)
                    .hasMessageNotContaining("has not answered");

            neverEnds.countDown();
        }
    }

    @Test
    void whatIsAnsweredTooLateDoesNotStayOpen() {
        var hasty = new DriverRequests(client, Duration.ofMillis(1));

        assertThatThrownBy(() -> hasty.publication(named("slow.test"), 7))
                .isInstanceOf(DriverTimeoutException.class)
                .hasMessageContaining("has not answered");
        assertThatThrownBy(() -> hasty.subscription(named("slow.test"), 7, _ -> {}, _ -> {}))
                .isInstanceOf(DriverTimeoutException.class);

        // answered behind both: by then the driver has done what it was asked before
        assertThat(requests.publication(named("last.example"), 8).isClosed()).isFalse();
        await().atMost(DEADLINE).untilAsserted(() -> assertThat(countersOfNames()).isEmpty());
        assertThat(client.isClosed()).isFalse();
    }

    /** What the driver counts for the named channels while they are open. */
    private List<String> countersOfNames() {
        List<String> labels = new ArrayList<>();
        client.countersReader()
                .forEach(
                        (_, label) -> {
                            if (label.contains(".test:")) {
                                labels.add(label);
                            }
                        });
        return labels;
    }

    @Test
    void aThreadThatIsInterruptedDoesNotWait() {
        Thread.currentThread().interrupt();
        try {
            assertThatThrownBy(() -> requests.publication(named("slow.test"), 1))
                    .isInstanceOf(AeronException.class)
                    .hasMessageContaining("interrupted");
        } finally {
            Thread.interrupted();
        }
        assertThat(client.isClosed()).isFalse();
    }
}
