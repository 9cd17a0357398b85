package dev.penstock.actors.supervisor;

import dev.penstock.actors.spi.RunListener;
import java.time.Duration;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tells a run's listener what happens on a thread of its own, in order: metrics of a thousand
 * ranks, or a disk that does not answer, are not to keep the supervisor from its ranks.
 */
final class ListenerThread {
    /** A listener that is so many events behind is waited for, as memory is finite. */
    static final int MOST_BEHIND = 1_000;

    private static final Duration SAY_AGAIN = Duration.ofSeconds(10);
    private static final Logger LOG = LoggerFactory.getLogger(ListenerThread.class);

    private final RunListener listener;
    private final Consumer<RuntimeException> onFailure;
    private int lastBehind = -1;
    private long lastMovedNanos;
    private final Semaphore room = new Semaphore(MOST_BEHIND);
    private final ExecutorService thread =
            Executors.newSingleThreadExecutor(
                    Thread.ofPlatform().daemon().name("penstock-listener").factory());

    /**
     * @param onFailure told, on that thread, of what a listener throws
     */
    ListenerThread(RunListener listener, Consumer<RuntimeException> onFailure) {
        this.listener = listener;
        this.onFailure = onFailure;
    }

    /** Tells it soon. After {@link #end} nobody listens any more. */
    void tell(Consumer<RunListener> event) {
        if (thread.isShutdown()) {
            LOG.debug("an event came after the end of its run, and nobody is told of it");
            return;
        }
        awaitRoom();
        thread.execute(
                () -> {
                    try {
                        event.accept(listener);
                    } catch (RuntimeException e) {
                        onFailure.accept(e);
                    } finally {
                        room.release();
                    }
                });
    }

    /** Without a deadline, since nothing may be left out; it says what it waits for. */
    private void awaitRoom() {
        boolean interrupted = false;
        long begun = System.nanoTime();
        for (boolean granted = false; !granted; ) {
            try {
                granted = room.tryAcquire(SAY_AGAIN.toSeconds(), TimeUnit.SECONDS);
                if (!granted) {
                    LOG.warn(
                            "the run waits for its metrics and events to be written, for {} s so far:"
                                    + " {} of them wait (does the disk answer?)",
                            TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - begun),
                            MOST_BEHIND);
                }
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** How many events it does not know yet. */
    int behind() {
        return MOST_BEHIND - room.availablePermits();
    }

    /**
     * Whether it has taken no event for so long; to be asked again and again from one thread, when
     * nothing is told any more.
     */
    boolean hasStoodStill(Duration span, long now) {
        int still = behind();
        if (still != lastBehind) {
            lastBehind = still;
            lastMovedNanos = now;
        }
        return now - lastMovedNanos > span.toNanos();
    }

    /** The last thing to do on that thread, when the listener knows everything; once. */
    void end(Runnable last) {
        if (thread.isShutdown()) {
            return;
        }
        thread.execute(last);
        thread.shutdown();
    }
}
