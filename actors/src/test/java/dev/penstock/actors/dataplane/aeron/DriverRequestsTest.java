package dev.penstock.actors.dataplane.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.driver.DefaultNameResolver;
import io.aeron.driver.MediaDriver;
import io.aeron.exceptions.AeronException;
import io.aeron.exceptions.RegistrationException;
import java.net.InetAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class DriverRequestsTest {
    private static final Duration SILENCE_OF_THE_DEAD = Duration.ofSeconds(3);
    private static final Duration TIME_OF_ONE = Duration.ofMillis(400);
    private static final int MANY = 10;
    private static final int TERM = 64 * 1024;

    @TempDir private Path parent;

    private MediaDriver driver;
    private Aeron client;
    private DriverRequests requests;

    /** A driver that takes its time for everything that has a name. */
    @BeforeEach
    void startDriver() {
        Path directory = parent.resolve("driver");
        driver =
                MediaDriver.launch(
                        DriverContexts.of(directory, TERM, PollerMode.ADAPTIVE, 2)
                                .nameResolver(new SlowNames()));
        client =
                Aeron.connect(
                        new Aeron.Context()
                                .aeronDirectoryName(directory.toString())
                                .driverTimeoutMs(SILENCE_OF_THE_DEAD.toMillis())
                                .errorHandler(_ -> {}));
        requests = new DriverRequests(client);
    }

    @AfterEach
    void stopDriver() {
        client.close();
        driver.close();
    }

    private static final class SlowNames extends DefaultNameResolver {
        @Override
        public InetAddress resolve(String name, String parameter, boolean again) {
            LockSupport.parkNanos(TIME_OF_ONE.toNanos());
            return InetAddress.getLoopbackAddress();
        }
    }

    @Test
    void theLastOfManyAnswersMayTakeLongerThanADriverMayBeSilent() {
        List<CompletableFuture<ExclusivePublication>> asked =
                IntStream.range(0, MANY).mapToObj(this::askForOne).toList();

        assertThat(asked).allSatisfy(one -> assertThat(one.join().isClosed()).isFalse());
    }

    private CompletableFuture<ExclusivePublication> askForOne(int number) {
        String channel = "aeron:udp?endpoint=slow%d.test:40456".formatted(number);
        return CompletableFuture.supplyAsync(
                () -> requests.publication(channel, 1),
                task -> Thread.ofPlatform().daemon().start(task));
    }

    @Test
    void aRefusalIsSaidAtOnce() {
        assertThatThrownBy(() -> requests.publication("aeron:ipc?term-length=7", 1))
                .isInstanceOf(RegistrationException.class)
                .hasMessageContaining("7");
    }

    @Test
    void nobodyWaitsForADriverThatDies() {
        var waiting =
                CompletableFuture.supplyAsync(
                        () -> requests.publication("aeron:udp?endpoint=slow.test:40457", 1));

        driver.close();

        assertThatThrownBy(waiting::join).hasCauseInstanceOf(AeronException.class);
    }
}
