package dev.penstock.runtime.model.activations;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The way between a rank's device and its host: copies run one after another, in the order in which
 * they were asked for, beside the computations of the rank. Its thread ends by itself when there is
 * nothing to copy.
 */
public final class HostLink {
    private static final long IDLE_SECONDS = 5;

    private final ThreadPoolExecutor copier;

    /** Whether anything was ever copied. */
    private boolean used;

    public HostLink() {
        copier =
                new ThreadPoolExecutor(
                        1,
                        1,
                        IDLE_SECONDS,
                        TimeUnit.SECONDS,
                        new LinkedBlockingQueue<>(),
                        Thread.ofPlatform().daemon().name("activations").factory());
        copier.allowCoreThreadTimeOut(true);
    }

    /**
     * Begins a copy.
     *
     * @param nanos is told what it took
     */
    CompletableFuture<Void> copy(AtomicLong nanos, Runnable task) {
        used = true;
        return CompletableFuture.runAsync(
                () -> {
                    long begun = System.nanoTime();
                    task.run();
                    nanos.addAndGet(System.nanoTime() - begun);
                },
                copier);
    }

    /** Waits until all copies so far have ended, whether or not they failed. */
    void settle() {
        if (used) {
            CompletableFuture.runAsync(() -> {}, copier).join();
        }
    }
}
