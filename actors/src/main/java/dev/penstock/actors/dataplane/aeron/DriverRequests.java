package dev.penstock.actors.dataplane.aeron;

import io.aeron.Aeron;
import io.aeron.AvailableImageHandler;
import io.aeron.ExclusivePublication;
import io.aeron.Subscription;
import io.aeron.UnavailableImageHandler;
import io.aeron.exceptions.AeronException;
import io.aeron.exceptions.DriverTimeoutException;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongConsumer;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;

/**
 * Has the media driver open publications and subscriptions, and waits for its answers. The driver
 * writes the whole log of a publication before it answers, one request after the other, so on a
 * busy machine the last of many answers takes longer than a driver may be silent. That it lives is
 * watched by Aeron's client meanwhile, which ends these waits when it does not. May be called from
 * any thread.
 */
final class DriverRequests {
    /** For an answer. */
    static final Duration PATIENCE = Duration.ofSeconds(30);

    private static final long LOOK_NANOS = 1_000_000;

    private final Aeron aeron;
    private final Duration patience;

    /**
     * @param patience for each answer
     */
    DriverRequests(Aeron aeron, Duration patience) {
        this.aeron = aeron;
        this.patience = patience;
    }

    /**
     * Opens a publication.
     *
     * @throws AeronException if the driver refuses, dies or does not answer, or the thread is
     *     interrupted
     */
    ExclusivePublication publication(String channel, int stream) {
        long request = aeron.asyncAddExclusivePublication(channel, stream);
        return await(request, aeron::getExclusivePublication, aeron::asyncRemovePublication);
    }

    /**
     * Opens a subscription.
     *
     * @throws AeronException if the driver refuses, dies or does not answer, or the thread is
     *     interrupted
     */
    Subscription subscription(
            String channel,
            int stream,
            AvailableImageHandler available,
            UnavailableImageHandler unavailable) {
        long request = aeron.asyncAddSubscription(channel, stream, available, unavailable);
        return await(request, aeron::getSubscription, aeron::asyncRemoveSubscription);
    }

    /** Returns what the driver opened; takes the request back if there is no answer. */
    private <T> T await(long request, LongFunction<@Nullable T> answer, LongConsumer takeBack) {
        long deadline = System.nanoTime() + patience.toNanos();
        T opened = answer.apply(request);
        while (opened == null) {
            if (Thread.currentThread().isInterrupted()) {
                takeBack.accept(request);
                throw new AeronException("interrupted while its answer was awaited");
            }
            if (System.nanoTime() - deadline >= 0) {
                takeBack.accept(request);
                throw new DriverTimeoutException(
                        "it lives, but has not answered for %d s".formatted(patience.toSeconds()));
            }
            LockSupport.parkNanos(this, LOOK_NANOS);
            opened = answer.apply(request);
        }
        return opened;
    }
}
