package dev.penstock.cuda.cpu;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * Threads that run the same piece of work together, each with its own index; the caller is thread
 * 0. Between two ops of a step there are microseconds, between steps there may be seconds: waiting
 * threads spin shortly, then park, so that they cost nothing on shared cores.
 *
 * <p>Used by one caller at a time.
 */
final class WorkerPool implements AutoCloseable {
    private static final long SPIN_NANOS = 50_000;

    /** About ten microseconds of work: less than it takes to wake a thread. */
    private static final int WORTH_WAKING = 32_768;

    private static final int SPINS_PER_LOOK_AT_THE_CLOCK = 32;

    /** A piece of work that all threads run, each for its share. */
    @FunctionalInterface
    interface Work {
        void run(int thread);
    }

    private final Worker[] workers;
    private final AtomicInteger running = new AtomicInteger();
    private final AtomicInteger generation = new AtomicInteger();
    private volatile @Nullable Work work;
    private volatile @Nullable Throwable failure;
    private volatile @Nullable Thread parkedCaller;
    private volatile boolean closed;

    WorkerPool(int threads, String name) {
        workers = new Worker[threads - 1];
        for (int i = 0; i < workers.length; i++) {
            workers[i] = new Worker(i + 1, name);
        }
        for (Worker worker : workers) {
            worker.thread.start();
        }
    }

    int threads() {
        return workers.length + 1;
    }

    /** Whether there is enough to do for all threads. */
    static boolean worthWaking(long elements) {
        return elements >= WORTH_WAKING;
    }

    /**
     * Runs the work of a small op on the calling thread and of a bigger one on all threads. Shares
     * are the same either way.
     *
     * @param elements how much there is to do, in elements of a memory-bound kernel
     */
    void run(long elements, Work newWork) {
        if (!worthWaking(elements)) {
            for (int thread = 0; thread < threads(); thread++) {
                newWork.run(thread);
            }
        } else {
            run(newWork);
        }
    }

    /**
     * Runs the work on all threads and returns when all are done; what any of them threw is thrown
     * here.
     */
    void run(Work newWork) {
        if (workers.length == 0) {
            newWork.run(0);
            return;
        }
        work = newWork;
        failure = null;
        running.set(workers.length);
        generation.incrementAndGet();
        for (Worker worker : workers) {
            worker.wake();
        }
        try {
            newWork.run(0);
        } finally {
            awaitWorkers();
            work = null;
        }
        Throwable thrown = failure;
        if (thrown instanceof RuntimeException e) {
            throw e;
        }
        if (thrown instanceof Error e) {
            throw e;
        }
    }

    private void awaitWorkers() {
        long spinUntil = System.nanoTime() + SPIN_NANOS;
        while (running.get() > 0) {
            if (!spin(spinUntil)) {
                parkedCaller = Thread.currentThread();
                if (running.get() > 0) {
                    LockSupport.parkNanos(this, 1_000_000);
                }
                parkedCaller = null;
            }
        }
    }

    /** Waits a little; false when the time for spinning is over. */
    private static boolean spin(long until) {
        for (int i = 0; i < SPINS_PER_LOOK_AT_THE_CLOCK; i++) {
            Thread.onSpinWait();
        }
        return System.nanoTime() - until < 0;
    }

    /** Ends the threads. */
    @Override
    public void close() {
        closed = true;
        generation.incrementAndGet();
        for (Worker worker : workers) {
            worker.wake();
        }
        boolean interrupted = false;
        for (Worker worker : workers) {
            while (worker.thread.isAlive()) {
                try {
                    worker.thread.join();
                } catch (InterruptedException _) {
                    interrupted = true;
                }
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private final class Worker {
        private final int index;
        private final Thread thread;
        private volatile boolean parked;

        Worker(int index, String name) {
            this.index = index;
            this.thread =
                    Thread.ofPlatform().name(name + "-" + index).daemon().unstarted(this::loop);
        }

        void wake() {
            if (parked) {
                LockSupport.unpark(thread);
            }
        }

        private void loop() {
            int seen = 0;
            while (true) {
                awaitGenerationAfter(seen);
                if (closed) {
                    return;
                }
                seen = generation.get();
                runShare();
            }
        }

        private void awaitGenerationAfter(int seen) {
            long spinUntil = System.nanoTime() + SPIN_NANOS;
            while (generation.get() == seen) {
                if (!spin(spinUntil)) {
                    parked = true;
                    if (generation.get() == seen) {
                        LockSupport.park(WorkerPool.this);
                    }
                    parked = false;
                }
            }
        }

        private void runShare() {
            try {
                Work current = work;
                if (current != null) {
                    current.run(index);
                }
            } catch (Throwable e) {
                failure = e;
            } finally {
                if (running.decrementAndGet() == 0) {
                    Thread caller = parkedCaller;
                    if (caller != null) {
                        LockSupport.unpark(caller);
                    }
                }
            }
        }
    }
}
