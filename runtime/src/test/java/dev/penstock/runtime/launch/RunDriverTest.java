package dev.penstock.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;
import static org.awaitility.Awaitility.await;

import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.aeron.MediaDriverHandle;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The supervisor's thread asks for the driver and for another one; it never waits for either. */
@Timeout(30)
class RunDriverTest {
    private static final Path FIRST = Path.of("first");
    private static final Path SECOND = Path.of("second");

    private final List<CompletableFuture<MediaDriverHandle>> starts = new CopyOnWriteArrayList<>();
    private final List<Path> closed = new CopyOnWriteArrayList<>();
    private final List<Path> told = new CopyOnWriteArrayList<>();
    private final RunDriver driver = new RunDriver(this::slowStart);

    private MediaDriverHandle slowStart() {
        var start = new CompletableFuture<MediaDriverHandle>();
        starts.add(start);
        return start.join();
    }

    @Test
    void nobodyWaitsForADriverThatTakesLongToStart() {
        driver.begin(handle(FIRST));

        driver.restart(told::add, e -> fail("it starts", e));
        assertThat(driver.directory()).isEmpty();
        await().until(() -> !starts.isEmpty());
        starts.getFirst().complete(handle(SECOND));
        await().until(() -> !told.isEmpty());

        assertThat(told).containsExactly(SECOND);
        assertThat(driver.directory()).contains(SECOND);
        assertThat(closed).containsExactly(FIRST);
    }

    @Test
    void whoeverAsksAgainWhileOneStartsGetsThatOne() {
        driver.begin(handle(FIRST));

        driver.restart(told::add, e -> fail("it starts", e));
        driver.restart(told::add, e -> fail("it starts", e));
        await().until(() -> !starts.isEmpty());
        starts.getFirst().complete(handle(SECOND));
        await().until(() -> !told.isEmpty());

        assertThat(starts).hasSize(1);
        assertThat(closed).containsExactly(FIRST);
    }

    @Test
    void afterOneThatDoesNotStartAnotherMayBeAskedFor() {
        List<String> failures = new CopyOnWriteArrayList<>();
        var broken =
                new RunDriver(
                        () -> {
                            throw new DataPlaneException("no room");
                        });
        broken.begin(handle(FIRST));

        broken.restart(told::add, e -> failures.add(e.getMessage()));
        await().until(() -> failures.size() == 1);
        broken.restart(told::add, e -> failures.add(e.getMessage()));
        await().until(() -> failures.size() == 2);

        assertThat(failures).containsOnly("no room");
        assertThat(closed).containsExactly(FIRST);
    }

    @Test
    void aDriverThatStartsWhileTheRunEndsIsStoppedAsWell() {
        driver.begin(handle(FIRST));
        driver.restart(told::add, e -> fail("it starts", e));
        await().until(() -> !starts.isEmpty());
        Thread end = Thread.ofVirtual().start(driver::close);
        starts.getFirst().complete(handle(SECOND));
        await().until(() -> !end.isAlive());

        assertThat(closed).containsExactly(FIRST, SECOND);
        assertThat(driver.directory()).isEmpty();
    }

    private MediaDriverHandle handle(Path directory) {
        return new MediaDriverHandle() {
            @Override
            public Path directory() {
                return directory;
            }

            @Override
            public void close() {
                closed.add(directory);
            }
        };
    }
}
