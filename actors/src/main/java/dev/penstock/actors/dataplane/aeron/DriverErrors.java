package dev.penstock.actors.dataplane.aeron;

import io.aeron.exceptions.AeronException;
import java.util.function.LongSupplier;
import org.agrona.ErrorHandler;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Logs what a media driver reports. Strangers can cause warnings as often as they like, so of these
 * the log has one in ten seconds, with the number of those that it left out. The driver's thread
 * only.
 */
final class DriverErrors implements ErrorHandler {
    private static final Logger LOG = LoggerFactory.getLogger(DriverErrors.class);
    private static final long PAUSE_NANOS = 10_000_000_000L;

    private final LongSupplier nanos;
    private long nextNanos;
    private long leftOut;

    DriverErrors(LongSupplier nanos) {
        this.nanos = nanos;
        this.nextNanos = nanos.getAsLong();
    }

    @Override
    public void onError(Throwable error) {
        if (!isWarning(error)) {
            LOG.warn("the media driver reports an error", error);
            return;
        }
        long now = nanos.getAsLong();
        if (now - nextNanos < 0) {
            leftOut++;
            return;
        }
        LOG.warn(
                "the media driver warns: {} ({} warnings before were left out)",
                error.getMessage(),
                leftOut);
        nextNanos = now + PAUSE_NANOS;
        leftOut = 0;
    }

    private static boolean isWarning(Throwable error) {
        return error instanceof AeronException aeron
                && aeron.category() == AeronException.Category.WARN;
    }
}
