package dev.penstock.actors.exploration;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.simulation.QuietLog;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Whatever the order of messages and wherever these faults strike: no rank applies a step twice,
 * all apply it with one clip factor, ranks that open links in an epoch have one supervisor, nobody
 * goes back below a commit that all ranks reach, a checkpoint has the parts of one epoch, and the
 * run completes.
 *
 * <p>{@code -Dexploration.all=true}, which is in the nightly profile, tries faults that take
 * minutes.
 */
@ExtendWith(QuietLog.class)
class InterleavingsTest {
    private static final boolean ALL = Boolean.getBoolean("exploration.all");
    private static final long MOST_STATES = 20_000_000;

    static Stream<Faults> faults() {
        Stream<Faults> soonTried = Stream.of(new Faults(0, 0, 0, 0), new Faults(1, 0, 0, 0));
        return ALL ? Stream.concat(soonTried, Stream.of(new Faults(0, 1, 0, 0))) : soonTried;
    }

    /**
     * Take-overs while the former supervisor lives, with the end of its journal lost, together with
     * deaths and lost messages: too many orders to try all, so some of them. The number of a walk
     * repeats it.
     */
    @ParameterizedTest
    @CsvSource({"0, 0, 1, 0", "0, 0, 1, 1", "1, 1, 0, 0", "1, 0, 1, 1", "0, 1, 1, 1", "1, 1, 1, 1"})
    void walksThroughFaultsThatMeetKeepThePromises(
            int losses, int deaths, int takeOvers, int lostRecords) {
        var faults = new Faults(losses, deaths, takeOvers, lostRecords);
        var explorer = new Explorer(0);
        for (long walk = 0; walk < (ALL ? 200_000 : 1_000); walk++) {
            var violation = explorer.walk(new ModelWorld(faults), new Random(walk));

            assertThat(violation).as("walk %d, %s", walk, explorer).isEmpty();
        }
    }

    @ParameterizedTest
    @MethodSource("faults")
    void everyInterleavingKeepsThePromises(Faults faults) {
        var explorer = new Explorer(MOST_STATES);

        var violation = explorer.explore(new ModelWorld(faults));

        assertThat(violation).as(explorer::toString).isEmpty();
        assertThat(explorer.sawAll()).as(explorer::toString).isTrue();
    }
}
