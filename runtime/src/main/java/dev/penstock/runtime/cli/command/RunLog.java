package dev.penstock.runtime.cli.command;

import static java.nio.charset.StandardCharsets.UTF_8;

import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.encoder.PatternLayoutEncoder;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.AppenderBase;
import dev.penstock.runtime.metrics.LineFile;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Arrays;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The log file of a run, beside its other files. Everything from INFO on is appended to it, each
 * event whole or, while the disk is full, not at all.
 */
public final class RunLog implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(RunLog.class);
    private static final String PATTERN =
            "%d{yyyy-MM-dd'T'HH:mm:ss.SSS} %-5level %logger{20}"
                    + " [rank=%X{rank:--} stage=%X{stage:--}] %msg %kvp%n";

    private final ch.qos.logback.classic.Logger root;
    private final Appender appender;

    private RunLog(ch.qos.logback.classic.Logger root, Appender appender) {
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
        var appender = new Appender(file, encoder);
        appender.setContext(context);
        appender.setName("run " + file);
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

    /** One thread at a time; what the file says of itself goes to the other appenders. */
    private static final class Appender extends AppenderBase<ILoggingEvent> {
        private final PatternLayoutEncoder encoder;
        private final LineFile lines;

        Appender(Path file, PatternLayoutEncoder encoder) {
            this.encoder = encoder;
            this.lines =
                    new LineFile(
                            file,
                            lost ->
                                    "%s WARN  %d events are missing here: the disk took none"
                                            .formatted(Instant.now(), lost)
                                            .getBytes(UTF_8),
                            LOG);
            lines.create();
        }

        @Override
        protected void append(ILoggingEvent event) {
            byte[] text = encoder.encode(event);
            int end = text.length;
            while (end > 0 && (text[end - 1] == '\n' || text[end - 1] == '\r')) {
                end--;
            }
            lines.append(Arrays.copyOf(text, end));
        }

        @Override
        public void stop() {
            super.stop();
            lines.close();
        }
    }
}
