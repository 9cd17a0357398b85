package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.spi.VitalSigns;
import dev.penstock.actors.spi.VitalSigns.State;
import dev.penstock.actors.spi.VitalSigns.ThreadSigns;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class ProcessorWaitsTest {
    private static final long SECOND = 1_000_000_000;

    private final ProcessorWaits waits = new ProcessorWaits();

    @Test
    void nothingIsKnownBeforeALook() {
        assertThat(waits.state()).isEmpty();
        assertThat(waits.spanNanos()).isZero();
        assertThat(waits.waitedNanos()).isZero();
    }

    @Test
    void waitsThatAreOverCountFromTheFirstLook() {
        look(5, asleep(1, 7 * SECOND, 10));
        look(7, asleep(1, 8 * SECOND, 30));

        assertThat(waits.spanNanos()).isEqualTo(2 * SECOND);
        assertThat(waits.waitedNanos()).isEqualTo(SECOND);
    }

    @Test
    void aWaitThatLastsIsSeenByNothingMoving() {
        look(5, asleep(1, 0, 10));
        look(6, ready(1, 0, 0, 10));
        look(7, ready(1, 0, 0, 10));
        look(8, ready(1, 0, 0, 10));

        assertThat(waits.waitedNanos()).isEqualTo(2 * SECOND);
    }

    @Test
    void aWaitIsCountedOnceWhenItIsOver() {
        look(5, ready(1, 0, 0, 10));
        look(7, ready(1, 0, 0, 10));
        look(8, asleep(1, 3 * SECOND, 11));

        assertThat(waits.waitedNanos()).isEqualTo(3 * SECOND);
    }

    @Test
    void whoRunsOnAProcessorOfItsOwnDoesNotWait() {
        look(5, ready(1, 0, 0, 10));
        look(6, ready(1, SECOND, 0, 10));
        look(7, ready(1, 2 * SECOND, 0, 10));

        assertThat(waits.waitedNanos()).isZero();
    }

    @Test
    void whoIsOftenGivenAProcessorDoesNotWait() {
        look(5, ready(1, 0, 0, 10));
        look(6, ready(1, 0, 0, 11));
        look(7, ready(1, 0, 0, 12));

        assertThat(waits.waitedNanos()).isZero();
    }

    @Test
    void theThreadThatWaitedLongestIsTheMeasure() {
        look(5, asleep(1, 0, 1), ready(2, 0, 0, 1), asleep(3, 0, 1));
        look(8, asleep(1, SECOND, 2), ready(2, 0, 0, 1), asleep(3, 2 * SECOND, 2));

        assertThat(waits.waitedNanos()).isEqualTo(3 * SECOND);
    }

    @Test
    void aThreadIsCountedFromWhenItIsFirstSeen() {
        look(5, asleep(1, 0, 1));
        look(6, asleep(1, 0, 2), asleep(2, 9 * SECOND, 1));
        look(7, asleep(1, 0, 3));

        assertThat(waits.waitedNanos()).isZero();
    }

    @Test
    void noThreadWaitsLongerThanTheTimeItWasLookedAt() {
        look(5, ready(1, 0, 0, 10)); // since 4 s already
        look(6, asleep(1, 5 * SECOND, 11));

        assertThat(waits.waitedNanos()).isEqualTo(SECOND);
    }

    @Test
    void aRestartForgetsWhatWas() {
        look(5, asleep(1, 0, 10));
        look(6, asleep(1, SECOND, 11));
        waits.restart();
        assertThat(waits.spanNanos()).isZero();
        look(8, asleep(1, SECOND, 12));

        assertThat(waits.spanNanos()).isEqualTo(2 * SECOND);
        assertThat(waits.waitedNanos()).isZero();
    }

    @Test
    void aLaterProcessWithTheSamePidIsNotThisOne() {
        look(5, asleep(1, 0, 1));
        assertThat(waits.state()).contains(State.ALIVE);

        waits.look(Optional.of(new VitalSigns(2, State.ALIVE, List.of())), 6 * SECOND);
        assertThat(waits.state()).isEmpty();
        look(7, asleep(1, 0, 1));
        assertThat(waits.state()).as("the dead stay dead").isEmpty();
    }

    @Test
    void aProcessThatIsGoneIsUnknown() {
        look(5, asleep(1, 0, 1));
        waits.look(Optional.empty(), 6 * SECOND);

        assertThat(waits.state()).isEmpty();
    }

    private void look(long second, ThreadSigns... threads) {
        waits.look(Optional.of(new VitalSigns(1, State.ALIVE, List.of(threads))), second * SECOND);
    }

    private static ThreadSigns asleep(long id, long waited, long turns) {
        return new ThreadSigns(id, false, 0, waited, turns);
    }

    private static ThreadSigns ready(long id, long ran, long waited, long turns) {
        return new ThreadSigns(id, true, ran, waited, turns);
    }
}
