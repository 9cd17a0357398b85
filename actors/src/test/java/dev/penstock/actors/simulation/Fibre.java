package dev.penstock.actors.simulation;

import dev.penstock.actors.dataplane.DataPlaneException;
import java.util.Objects;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * Work that rests in its midst while the simulation goes on: a thread that never runs beside the
 * one that lets it. Virtual ones change places without the help of the operating system.
 */
final class Fibre {
    private final Thread thread = Thread.ofVirtual().unstarted(this::loop);

    /** Who waits until this rests or is done; null while nobody does. */
    private volatile @Nullable Thread waiting;

    private @Nullable Runnable work;
    private @Nullable Throwable failure;
    private boolean begun;
    private boolean over;

    /** Begins work; whether it is done already. Only when the last is. */
    boolean begin(Runnable newWork) {
        work = newWork;
        return goOn();
    }

    /** Goes on with what rests; whether it is done. */
    boolean goOn() {
        waiting = Thread.currentThread();
        if (begun) {
            LockSupport.unpark(thread);
        } else {
            begun = true;
            thread.start();
        }
        while (waiting != null) {
            LockSupport.park(this);
        }
        if (failure != null) {
            throw new AssertionError("work failed that should catch everything", failure);
        }
        return work == null;
    }

    /** Called by the work: returns when somebody lets it go on. */
    void rest() {
        if (!over) {
            handBack();
            while (waiting == null) {
                LockSupport.park(this);
            }
        }
        if (over) {
            throw new DataPlaneException("the simulation is over");
        }
    }

    /** What rests fails; nothing is left of the thread. */
    void end() {
        over = true;
        if (begun) {
            goOn();
        }
    }

    private void handBack() {
        Thread other = waiting;
        waiting = null;
        LockSupport.unpark(other);
    }

    private void loop() {
        while (!over) {
            try {
                Objects.requireNonNull(work).run();
            } catch (RuntimeException | Error e) {
                failure = e;
            }
            work = null;
            if (!over) {
                handBack();
                while (waiting == null) {
                    LockSupport.park(this);
                }
            }
        }
        handBack();
    }

    /** Runs all of something where fibres change places fastest. */
    static void within(Runnable all) {
        var failed = new Throwable[1];
        Thread own =
                Thread.ofVirtual()
                        .start(
                                () -> {
                                    try {
                                        all.run();
                                    } catch (RuntimeException | Error e) {
                                        failed[0] = e;
                                    }
                                });
        try {
            own.join();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
        switch (failed[0]) {
            case null -> {}
            case RuntimeException e -> throw e;
            case Error e -> throw e;
            default -> throw new AssertionError(failed[0]);
        }
    }
}
