package dev.penstock.runtime.launch;

import dev.penstock.actors.dataplane.DataPlaneException;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * Whether a {@link HostedProcess} lives. A thread of a dead process stays where it notices that,
 * until the process is buried at the end of the test: it finishes no op, sends nothing, writes
 * nothing and closes nothing.
 */
final class ProcessLife {
    private static final Duration LIMIT = Duration.ofMinutes(5);

    private final CountDownLatch buried = new CountDownLatch(1);
    private volatile boolean over;

    /** Ends the life. Returns whether this call was the one that did. */
    synchronized boolean end() {
        boolean first = !over;
        over = true;
        return first;
    }

    boolean isOver() {
        return over;
    }

    /** Lets the threads of a dead process fail and close what they have. */
    void bury() {
        buried.countDown();
    }

    /** Returns at once while the process lives. In a dead one it never returns. */
    void requireAlive() {
        if (over) {
            awaitBurial();
            throw new DataPlaneException("this process was killed, and now the test ends");
        }
    }

    /** Keeps a dead process from closing anything until it is buried. */
    void beforeClosing() {
        if (over) {
            awaitBurial();
        }
    }

    private void awaitBurial() {
        long end = System.nanoTime() + LIMIT.toNanos();
        boolean interrupted = false;
        while (buried.getCount() > 0 && end - System.nanoTime() > 0) {
            try {
                var _ = buried.await(end - System.nanoTime(), TimeUnit.NANOSECONDS);
            } catch (InterruptedException e) {
                interrupted = true; // no excuse for a dead thread to move
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
