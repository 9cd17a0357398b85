package dev.penstock.actors.exploration;

import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.slf4j.LoggerFactory;

class EveryInterleavingTest {
    private static final Logger LOG = (Logger) LoggerFactory.getLogger("dev.penstock.actors");

    @BeforeAll
    static void recoveriesAreNoNews() {
        LOG.setLevel(Level.OFF);
    }

    @AfterAll
    static void listenAgain() {
        LOG.setLevel(null);
    }

    @ParameterizedTest
    @CsvSource({"0, 0, 0, 0", "1, 0, 0, 0"})
    void nothingIsBroken(int losses, int deaths, int takeOvers, int lostRecords) {
        var explorer = new Explorer(Long.getLong("limit", 1_000_000));
        long start = System.nanoTime();
        var found =
                explorer.explore(
                        new ModelWorld(
                                new ModelWorld.Faults(losses, deaths, takeOvers, lostRecords)));
        System.out.printf(
                "%d %d %d %d: %s, %.1f s%n",
                losses,
                deaths,
                takeOvers,
                lostRecords,
                explorer,
                (System.nanoTime() - start) / 1e9);
        assertThat(found).isEmpty();
    }
}
