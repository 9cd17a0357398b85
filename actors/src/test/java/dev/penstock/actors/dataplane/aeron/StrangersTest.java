package dev.penstock.actors.dataplane.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.aeron.Aeron;
import io.aeron.Publication;
import io.aeron.Subscription;
import java.io.IOException;
import java.net.DatagramSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** What whoever reaches a UDP port can have done here before he has proved anything. */
class StrangersTest {
    private static final long SECOND = 1_000_000_000;
    private static final int TERM = 64 * 1024;
    private static final int PUBLICATIONS = 4;
    private static final int SESSIONS = 40;

    @Test
    void keysAreDerivedAHundredTimesASecondHoweverManySessionsThereAre() {
        Strangers strangers = new Strangers(0);
        long atOnce = derived(strangers, 0, 10_000);

        long later = 0;
        for (int milli = 1; milli <= 10_000; milli++) {
            later += derived(strangers, milli * SECOND / 1000, 10);
        }

        assertThat(atOnce).isLessThanOrEqualTo(512);
        assertThat(later).isEqualTo(1000);
    }

    @Test
    void timeInWhichNobodyComesIsNotSavedUpForLater() {
        Strangers strangers = new Strangers(0);

        assertThat(derived(strangers, 3600 * SECOND, 10_000)).isLessThanOrEqualTo(512);
    }

    private static long derived(Strangers strangers, long now, int frames) {
        return Stream.generate(() -> strangers.mayDeriveKey(now))
                .limit(frames)
                .filter(may -> may)
                .count();
    }

    /** Each session that somebody announces costs a log, as long as he likes it to be. */
    @Test
    void aStreamTakesNoMoreSessionsThanTheRunCanHave() throws IOException {
        var settings = DriverSettings.inSharedMemory("strangers", TERM, PUBLICATIONS);
        String channel = "aeron:udp?endpoint=localhost:" + freePort();
        try (EmbeddedDriver driver = EmbeddedDriver.start(settings);
                Aeron aeron =
                        Aeron.connect(
                                new Aeron.Context()
                                        .aeronDirectoryName(driver.directory().toString())
                                        .errorHandler(_ -> {}));
                Subscription inbox = aeron.addSubscription(channel, 1000)) {
            List<Publication> announced = new ArrayList<>();
            for (int session = 0; session < SESSIONS; session++) {
                announced.add(aeron.addExclusivePublication(channel, 1000));
            }
            await().until(() -> inbox.imageCount() > PUBLICATIONS);
            await().pollDelay(Duration.ofSeconds(1)).until(() -> true);

            assertThat(logs(driver.directory().resolve("images")))
                    .isLessThanOrEqualTo(PUBLICATIONS + 8);
            announced.forEach(Publication::close);
        }
    }

    private static int freePort() throws IOException {
        try (DatagramSocket socket = new DatagramSocket(0)) {
            return socket.getLocalPort();
        }
    }

    private static long logs(Path folder) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.count();
        }
    }
}
