package dev.penstock.actors.supervisor;

import dev.penstock.actors.spi.RunListener;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.function.Consumer;

/**
 * Tells a run's listener what happens on a thread of its own, in order: metrics of a thousand
 * ranks, or a disk that does not answer, are not to keep the supervisor from its ranks.
 */
final class ListenerThread {
    /** A listener that is so many events behind is waited for, as memory is finite. */
    static final int MOST_BEHIND = 1_000;

    private final RunListener listener;
    private final Consumer<RuntimeException> onFailure;
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

    /** Tells it soon; not after {@link #end}. */
    void tell(Consumer<RunListener> event) {
        room.acquireUninterruptibly();
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

    /** The last thing to do on that thread, when the listener knows everything. */
    void end(Runnable last) {
        thread.execute(last);
        thread.shutdown();
    }
}
