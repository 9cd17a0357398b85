package dev.penstock.systemtests.support;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.time.Duration;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The program under way: in a JVM of its own, or on a thread of the test's. Closing it ends it. */
public sealed interface RunningCli extends AutoCloseable permits ForkedCli, HostedCli {
    Duration PATIENCE = Duration.ofSeconds(90);

    /** Returns all output so far, from both streams. */
    String output();

    boolean isAlive();

    /** Waits for the end and returns the exit code. */
    int awaitEnd(Duration limit) throws InterruptedException;

    /** Asks it to end as Ctrl-C does: a node leaves its cluster, a run saves and ends. */
    void interrupt() throws Exception;

    @Override
    void close();

    /** Waits until the program has printed a match and returns the last group of the match. */
    default String awaitOutput(String pattern) {
        Pattern wanted = Pattern.compile(pattern);
        await().atMost(PATIENCE)
                .pollInterval(Duration.ofMillis(50))
                .until(
                        () -> {
                            boolean alive = isAlive(); // asked first: it may print and end
                            boolean found = wanted.matcher(output()).find();
                            assertThat(found || alive)
                                    .as(() -> "ended without printing " + pattern + ": " + output())
                                    .isTrue();
                            return found;
                        });
        Matcher match = wanted.matcher(output());
        assertThat(match.find()).isTrue();
        return match.group(match.groupCount());
    }
}
