package dev.penstock;

import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.function.Consumer;
import java.util.function.Function;

/** A training under way. Safe to use from any thread. */
public final class Training implements AutoCloseable {
    private final CompletableFuture<TrainingEnd> end = new CompletableFuture<>();

    /** Threads on which a listener is told something now. */
    private final Set<Thread> telling = ConcurrentHashMap.newKeySet();

    private Runnable stop = () -> {};
    private boolean asked;

    Training() {}

    /**
     * Asks it to finish its step, save and end; does not wait for that. Does nothing to one that
     * has ended.
     */
    public synchronized void stop() {
        if (!asked) {
            asked = true;
            stop.run();
        }
    }

    /** Takes what stops it, which is done at once if somebody asked for it before. */
    synchronized void onStop(Runnable action) {
        stop = action;
        if (asked) {
            action.run();
        }
    }

    /** Trains on the thread of the caller, and keeps the end for those who wait for it. */
    TrainingEnd run(Function<Training, TrainingEnd> trainer, Consumer<TrainingEnd> last) {
        try {
            TrainingEnd reached = trainer.apply(this);
            last.accept(reached);
            end.complete(reached);
            return reached;
        } catch (Throwable e) {
            end.completeExceptionally(e);
            throw e;
        }
    }

    /**
     * Waits for its end.
     *
     * @throws PenstockException if it cannot begin, or fails; from a listener of its own, for which
     *     its end waits
     * @throws InterruptedException if the waiting thread is interrupted; the training goes on
     */
    public TrainingEnd await() throws InterruptedException {
        requireNoListener();
        try {
            return end.get();
        } catch (ExecutionException e) {
            throw Failures.elsewhere(e.getCause() == null ? e : e.getCause());
        }
    }

    /** Tells listeners something, on this thread. */
    void telling(Runnable what) {
        telling.add(Thread.currentThread());
        try {
            what.run();
        } finally {
            telling.remove(Thread.currentThread());
        }
    }

    private void requireNoListener() {
        if (telling.contains(Thread.currentThread()) && !hasEnded()) {
            throw new PenstockException(
                    List.of(
                            "a listener waits for the end of its training, which waits for the listener; call stop(), or wait on another thread"),
                    null);
        }
    }

    /** Returns whether it has ended. */
    public boolean hasEnded() {
        return end.isDone();
    }

    /**
     * Stops it and waits for its end, which may be a failure: {@link #await} says so. An interrupt
     * of the waiting thread ends the wait.
     *
     * @throws PenstockException from a listener of its own, for which its end waits
     */
    @Override
    public void close() {
        stop();
        requireNoListener();
        try {
            var _ = end.handle((_, _) -> true).get();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (ExecutionException e) {
            throw new IllegalStateException("a handled end has no failure", e);
        }
    }
}
