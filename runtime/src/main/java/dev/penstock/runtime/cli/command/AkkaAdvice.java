package dev.penstock.runtime.cli.command;

import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.filter.Filter;
import ch.qos.logback.core.spi.FilterReply;

/**
 * Keeps one message of Akka's from the terminal: to a node of another version or another cluster it
 * recommends switching off the check that refused it. The node says itself what differs.
 */
public final class AkkaAdvice extends Filter<ILoggingEvent> {
    private static final String SETTING = "configuration-compatibility-check.enforce-on-join";

    @Override
    public FilterReply decide(ILoggingEvent event) {
        boolean isAdvice =
                event.getLoggerName().startsWith("akka.")
                        && event.getFormattedMessage().contains(SETTING);
        return isAdvice ? FilterReply.DENY : FilterReply.NEUTRAL;
    }
}
