package dev.penstock.actors.dataplane.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import io.aeron.exceptions.AeronEvent;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.slf4j.LoggerFactory;

/** Whoever reaches a UDP port can have the driver warn; he cannot fill the log with it. */
class DriverErrorsTest {
    private static final long SECOND = 1_000_000_000;
    private static final String MINE = "of this test";

    private final ListAppender<ILoggingEvent> log = new ListAppender<>();
    private long now;
    private final DriverErrors errors = new DriverErrors(() -> now);

    @BeforeEach
    void listen() {
        log.start();
        logger().addAppender(log);
    }

    @AfterEach
    void listenNoMore() {
        logger().detachAppender(log);
    }

    private static Logger logger() {
        return (Logger) LoggerFactory.getLogger(DriverErrors.class);
    }

    @Test
    void warningsAreLoggedOnceInTenSecondsWithTheNumberOfTheOthers() {
        for (int i = 0; i < 1_000; i++) {
            errors.onError(new AeronEvent("exceeded session limit " + MINE));
        }
        now = 11 * SECOND;
        errors.onError(new AeronEvent("exceeded session limit " + MINE));

        assertThat(logged())
                .satisfiesExactly(
                        first -> assertThat(first).contains("exceeded session limit", "(0 "),
                        second -> assertThat(second).contains("exceeded session limit", "(999 "));
    }

    @Test
    void errorsAreAlwaysLogged() {
        errors.onError(new IllegalStateException(MINE));
        errors.onError(new IllegalStateException(MINE));

        assertThat(log.list)
                .filteredOn(
                        event ->
                                event.getThrowableProxy() != null
                                        && MINE.equals(event.getThrowableProxy().getMessage()))
                .hasSize(2);
    }

    /** Drivers of other tests may warn at the same time. */
    private List<String> logged() {
        return new ArrayList<>(log.list)
                .stream()
                        .map(ILoggingEvent::getFormattedMessage)
                        .filter(m -> m.contains(MINE))
                        .toList();
    }
}
