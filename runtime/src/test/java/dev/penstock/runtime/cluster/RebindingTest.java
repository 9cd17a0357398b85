package dev.penstock.runtime.cluster;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** A node that starts anew gets its port back, or another one, unless that would be a lie. */
class RebindingTest {
    private static final Duration PATIENCE = Duration.ofSeconds(20);

    private final List<Integer> tried = new ArrayList<>();

    @Test
    void aPortThatWasChosenFreelyIsReplacedWhenItIsTaken() {
        assertThat(bind(0, 40_001, 1)).isEqualTo(0);

        assertThat(tried).containsExactly(40_001, 0);
    }

    @Test
    void aConfiguredPortIsTriedAgainUntilItIsFree() {
        assertThat(bind(2551, 2551, 2)).isEqualTo(2551);

        assertThat(tried).containsExactly(2551, 2551, 2551);
    }

    @Test
    void whoHasNotListenedBeforeDoesNotWait() {
        assertThatThrownBy(
                        () ->
                                Rebinding.bind(
                                        2551,
                                        2551,
                                        Duration.ZERO,
                                        () -> false,
                                        port -> taken(port)))
                .isInstanceOf(ClusterException.class);

        assertThat(tried).containsExactly(2551);
    }

    @Test
    void whoIsToEndDoesNotWaitForItsPort() {
        assertThatThrownBy(
                        () ->
                                Rebinding.bind(
                                        2551,
                                        2551,
                                        PATIENCE,
                                        () -> tried.size() == 2,
                                        port -> taken(port)))
                .isInstanceOf(ClusterException.class);

        assertThat(tried).containsExactly(2551, 2551);
    }

    private int bind(int configured, int last, int failures) {
        return Rebinding.bind(
                configured,
                last,
                PATIENCE,
                () -> false,
                port -> tried.size() < failures ? taken(port) : free(port));
    }

    private int free(int port) {
        tried.add(port);
        return port;
    }

    private int taken(int port) {
        tried.add(port);
        throw new ClusterException("port %d is taken".formatted(port));
    }
}
