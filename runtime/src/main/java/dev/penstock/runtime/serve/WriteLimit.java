package dev.penstock.runtime.serve;

import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/**
 * Lets no write to a client take longer than so long. One that does is interrupted, which closes
 * its connection: a client that does not read what it asked for would keep its text's place for
 * ever.
 */
final class WriteLimit {
    private static final ScheduledExecutorService CLOCK =
            Executors.newSingleThreadScheduledExecutor(
                    Thread.ofPlatform().daemon().name("penstock-serve-writes").factory());

    private final Duration limit;

    WriteLimit(Duration limit) {
        this.limit = limit;
    }

    /** Writes something. */
    @FunctionalInterface
    interface Write {
        void run() throws IOException;
    }

    /**
     * Writes on this thread.
     *
     * @throws IOException if that takes too long, or fails
     */
    void write(Write work) throws IOException {
        var attempt = new Attempt(Thread.currentThread());
        var late = CLOCK.schedule(attempt::interrupt, limit.toMillis(), TimeUnit.MILLISECONDS);
        try {
            work.run();
        } finally {
            late.cancel(false);
            attempt.end();
        }
    }

    /** A write that is interrupted while it is under way, and not later. */
    private static final class Attempt {
        private final Thread writer;
        private boolean over;
        private boolean interrupted;

        Attempt(Thread writer) {
            this.writer = writer;
        }

        synchronized void interrupt() {
            if (!over) {
                interrupted = true;
                writer.interrupt();
            }
        }

        /** The interrupt was of this write alone. */
        synchronized void end() {
            over = true;
            if (interrupted) {
                boolean _ = Thread.interrupted();
            }
        }
    }
}
