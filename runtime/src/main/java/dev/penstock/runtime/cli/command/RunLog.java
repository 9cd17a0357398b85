package dev.penstock.runtime.cli.command;

import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.encoder.PatternLayoutEncoder;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.FileAppender;
import java.nio.file.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The log file of a run, beside its other files. Everything from INFO on is appended to it. */
public final class RunLog implements AutoCloseable {
    private static final String PATTERN =
            "%d{yyyy-MM-dd'T'HH:mm:ss.SSS} %-5level %logger{20}"
                    + " [rank=%X{rank:--} stage=%X{stage:--}] %msg %kvp%n";

    private final ch.qos.logback.classic.Logger root;
    private final FileAppender<ILoggingEvent> appender;

    private RunLog(ch.qos.logback.classic.Logger root, FileAppender<ILoggingEvent> appender) {
        this.root = root;
        this.appender = appender;
    }

    /** Logs to a file until closed; does nothing to what the terminal shows. */
    public static RunLog to(Path file) {
        LoggerContext context = (LoggerContext) LoggerFactory.getILoggerFactory();
        PatternLayoutEncoder encoder = new PatternLayoutEncoder();
        encoder.setContext(context);
        encoder.setPattern(PATTERN);
        encoder.start();
        FileAppender<ILoggingEvent> appender = new FileAppender<>();
        appender.setContext(context);
        appender.setName("run " + file);
        appender.setFile(file.toString());
        appender.setEncoder(encoder);
        appender.start();
        ch.qos.logback.classic.Logger root = context.getLogger(Logger.ROOT_LOGGER_NAME);
        root.addAppender(appender);
        return new RunLog(root, appender);
    }

    @Override
    public void close() {
        root.detachAppender(appender);
        appender.stop();
    }
}
