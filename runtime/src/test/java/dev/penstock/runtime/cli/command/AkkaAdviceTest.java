package dev.penstock.runtime.cli.command;

import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.spi.LoggingEvent;
import ch.qos.logback.core.spi.FilterReply;
import org.junit.jupiter.api.Test;

class AkkaAdviceTest {
    /** Akka 2.8 says so where a node is refused. */
    private static final String ADVICE =
            "Couldn't join seed nodes because of incompatible cluster configuration. If a cluster"
                    + " shutdown isn't an option, you may want to disable this protection by setting"
                    + " 'akka.cluster.configuration-compatibility-check.enforce-on-join = off'.";

    @Test
    void nobodyIsToldToSwitchOffTheCheckOfVersions() {
        assertThat(reply("akka.cluster.Cluster", ADVICE)).isEqualTo(FilterReply.DENY);
    }

    @Test
    void everythingElseIsShown() {
        assertThat(reply("akka.cluster.Cluster", "the disk melted")).isEqualTo(FilterReply.NEUTRAL);
        assertThat(reply("dev.penstock.Main", ADVICE)).isEqualTo(FilterReply.NEUTRAL);
    }

    private static FilterReply reply(String logger, String message) {
        var event =
                new LoggingEvent(
                        "",
                        new LoggerContext().getLogger(logger),
                        Level.ERROR,
                        message,
                        null,
                        null);
        return new AkkaAdvice().decide(event);
    }
}
