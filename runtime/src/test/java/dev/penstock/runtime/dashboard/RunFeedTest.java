package dev.penstock.runtime.dashboard;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.penstock.runtime.events.RunEvent;
import dev.penstock.runtime.events.RunEventLines;
import dev.penstock.runtime.metrics.RunDirectory;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RunFeedTest {
    @TempDir private Path folder;

    /** Its place is another's, and its thread does not wait for a socket that nobody reads. */
    @Test
    void aViewerThatStandsStillLosesItsPlace() throws Exception {
        var directory = new RunDirectory(folder);
        try (var feed = new RunFeed(directory, Duration.ofMillis(1))) {
            var subscribed = new CountDownLatch(1);
            Thread viewer =
                    Thread.ofVirtual()
                            .start(
                                    () -> {
                                        try (RunFeed.Subscription _ = feed.subscribe()) {
                                            subscribed.countDown();
                                            new CountDownLatch(1).await(); // as a write does
                                        } catch (InterruptedException e) {
                                            Thread.currentThread().interrupt();
                                        }
                                    });
            subscribed.await();
            var told = new AtomicInteger();

            await().atMost(Duration.ofSeconds(60))
                    .pollInterval(Duration.ofMillis(2))
                    .until(
                            () -> {
                                RunEventLines.append(
                                        directory.events(),
                                        new RunEvent.Evaluated(1, told.incrementAndGet(), 2));
                                return feed.subscribers() == 0;
                            });

            assertThat(viewer.join(Duration.ofSeconds(10))).isTrue();
        }
    }
}
