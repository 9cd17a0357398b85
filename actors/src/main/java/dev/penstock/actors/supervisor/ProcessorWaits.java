package dev.penstock.actors.supervisor;

import dev.penstock.actors.spi.VitalSigns;
import dev.penstock.actors.spi.VitalSigns.ThreadSigns;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The time for which a process was kept from running, from occasional observations. That it uses
 * processor time would prove nothing: the timers of a process that hangs keep running. But a
 * process that merely hangs has no thread that is ready and gets no processor.
 */
final class ProcessorWaits {
    private static final class Waiter {
        private ThreadSigns first;
        private ThreadSigns last;

        /**
         * Since this observation it has wanted to run every time and has never been given a
         * processor.
         */
        private ThreadSigns still;

        private long stillNanos;

        private Waiter(ThreadSigns signs, long now) {
            first = signs;
            last = signs;
            still = signs;
            stillNanos = now;
        }

        private void look(ThreadSigns signs, long now) {
            boolean unmoved =
                    last.wantsToRun() && signs.wantsToRun() && last.turns() == signs.turns();
            if (!unmoved) {
                still = signs;
                stillNanos = now;
            }
            last = signs;
        }

        /**
         * Returns the time waited. The system counts a wait when it is over; a wait that lasts
         * shows in counters that do not move.
         */
        private long waitedNanos(long now) {
            long over = last.waitedNanos() - first.waitedNanos();
            long ran = last.ranNanos() - still.ranNanos();
            return over + (last.wantsToRun() ? Math.max(0, now - stillNanos - ran) : 0);
        }
    }

    private final Map<Long, Waiter> threads = new HashMap<>();
    private @Nullable VitalSigns latest;
    private boolean gone;
    private long firstNanos;
    private long latestNanos;

    /**
     * @param signs empty if nothing is known of the process any longer
     */
    void look(Optional<VitalSigns> signs, long now) {
        VitalSigns seen = signs.orElse(null);
        gone = gone || seen == null || (latest != null && latest.startedAt() != seen.startedAt());
        if (gone || seen == null) {
            return;
        }
        if (latest == null) {
            firstNanos = now;
        }
        latest = seen;
        latestNanos = now;
        for (ThreadSigns each : seen.threads()) {
            Waiter known = threads.get(each.id());
            if (known == null) {
                threads.put(each.id(), new Waiter(each, now));
            } else {
                known.look(each, now);
            }
        }
    }

    /** Starts counting anew from the latest observation. */
    void restart() {
        firstNanos = latestNanos;
        threads.values().forEach(thread -> thread.first = thread.last);
    }

    /** Returns the state of the process when it was last observed; empty if that is not known. */
    Optional<VitalSigns.State> state() {
        return gone ? Optional.empty() : Optional.ofNullable(latest).map(VitalSigns::state);
    }

    /** Returns the time from the first observation to the latest. */
    long spanNanos() {
        return latestNanos - firstNanos;
    }

    /** Returns how long the thread that waited longest did, of {@link #spanNanos}. */
    long waitedNanos() {
        long longest =
                threads.values().stream()
                        .mapToLong(thread -> thread.waitedNanos(latestNanos))
                        .max()
                        .orElse(0);
        return Math.min(longest, spanNanos());
    }
}
