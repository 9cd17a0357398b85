package dev.penstock.actors.exploration;

import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import dev.penstock.actors.exploration.ModelWorld.Faults;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.slf4j.LoggerFactory;

/**
 * Whatever the order of messages and wherever these faults strike: no rank applies a step twice,
 * all apply it with one clip factor, ranks that open links in an epoch have one supervisor, nobody
 * goes back below a commit that all ranks reach, a checkpoint has the parts of one epoch, and the
 * run completes.
 *
 * <p>{@code -Dexploration.all=true}, which is in the nightly profile, tries faults that take
 * minutes.
 */
class EveryInterleavingTest {
    private static final Logger LOG = (Logger) LoggerFactory.getLogger("dev.penstock.actors");
    private static final boolean ALL = Boolean.getBoolean("exploration.all");
    private static final long MOST_STATES = 20_000_000;

    @BeforeAll
    static void recoveriesAreNoNews() {
        LOG.setLevel(Level.OFF);
    }

    @AfterAll
    static void listenAgain() {
        LOG.setLevel(null);
    }

    static Stream<Faults> faults() {
        Stream<Faults> soonTried = Stream.of(new Faults(0, 0, 0, 0), new Faults(1, 0, 0, 0));
        return ALL ? Stream.concat(soonTried, Stream.of(new Faults(0, 1, 0, 0))) : soonTried;
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
