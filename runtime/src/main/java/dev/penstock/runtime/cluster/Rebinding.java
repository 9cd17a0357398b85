package dev.penstock.runtime.cluster;

import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.IntFunction;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Listens again where a process listened before. Its former socket may take its time to close, and
 * a port that was free when it was chosen may have become another process's in between.
 */
final class Rebinding {
    private static final Logger LOG = LoggerFactory.getLogger(Rebinding.class);
    private static final Duration POLL = Duration.ofMillis(500);

    private Rebinding() {}

    /**
     * @param configured port; 0 if any does
     * @param last port that was listened on, or the configured one
     * @param patience how long to try again; for a port that any other can replace, not at all
     * @param isUnwanted whether nobody waits for it any more
     * @param bind listens on a port; 0 for any
     * @throws ClusterException if it cannot listen in time
     */
    static <T> T bind(
            int configured,
            int last,
            Duration patience,
            BooleanSupplier isUnwanted,
            IntFunction<T> bind) {
        long deadline = System.nanoTime() + patience.toNanos();
        while (true) {
            try {
                return bind.apply(last);
            } catch (ClusterException e) {
                if (configured == 0 && last != 0) {
                    LOG.warn("port {} is not free any more, another one will do", last, e);
                    return bind.apply(0);
                }
                if (System.nanoTime() >= deadline || isUnwanted.getAsBoolean()) {
                    throw e;
                }
                LOG.warn("port {} is not free yet: it is tried again", last, e);
                LockSupport.parkNanos(POLL.toNanos());
            }
        }
    }
}
