package dev.penstock.actors.dataplane.aeron;

import dev.penstock.actors.dataplane.DataPlaneException;
import java.lang.invoke.VarHandle;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The one thread of a process that moves arriving frames, for all ranks here. A sender in this
 * process wakes it; frames of other processes are found by looking.
 */
final class Poller implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Poller.class);
    private static final int SPINS = 200;
    private static final int YIELDS = 5;
    private static final long SHORTEST_PARK_NANOS = 50_000;
    private static final long LONGEST_PARK_NANOS = 1_000_000;

    /** With all senders in this process nothing is found by looking; only a safety net. */
    private static final long LOCAL_PARK_NANOS = 20_000_000;

    private final PollerMode mode;
    private final CopyOnWriteArrayList<Inbox> inboxes = new CopyOnWriteArrayList<>();
    private final Thread thread;
    private volatile boolean running = true;
    private volatile boolean remoteSenders;
    private volatile boolean parked;

    private int idleRounds;
    private long idleSince;

    Poller(PollerMode mode) {
        this.mode = mode;
        this.thread = Thread.ofPlatform().daemon().name("penstock-poller").unstarted(this::run);
    }

    void start() {
        thread.start();
    }

    void add(Inbox inbox) {
        inboxes.add(inbox);
        wake();
    }

    void remove(Inbox inbox) {
        inboxes.remove(inbox);
    }

    /** Whether frames come from other processes, too. */
    void expectRemoteSenders(boolean expected) {
        remoteSenders = expected;
        wake();
    }

    /**
     * Called after a frame was published. Either this thread sees that the poller is parked, or the
     * poller's last look, which comes after it said so, sees the frame.
     */
    void wake() {
        VarHandle.fullFence();
        if (parked) {
            parked = false;
            LockSupport.unpark(thread);
        }
    }

    private void run() {
        while (running) {
            int work = 0;
            for (Inbox inbox : inboxes) {
                work += poll(inbox);
            }
            idle(work);
        }
    }

    private int poll(Inbox inbox) {
        try {
            return inbox.poll();
        } catch (RuntimeException e) {
            LOG.error("the data plane's poller met an unexpected error", e);
            inbox.fail(new DataPlaneException("the poller broke: " + e, e));
            return 1;
        }
    }

    private void idle(int work) {
        if (work > 0) {
            idleRounds = 0;
            parked = false;
        } else if (mode == PollerMode.SPINNING || idleRounds < SPINS) {
            idleRounds++;
            Thread.onSpinWait();
        } else if (idleRounds < SPINS + YIELDS) {
            idleRounds++;
            Thread.yield(); // lets a sender on this core go on
            idleSince = System.nanoTime();
        } else if (!parked) {
            parked = true; // and look once more
        } else {
            LockSupport.parkNanos(this, parkNanos());
        }
    }

    private long parkNanos() {
        if (!remoteSenders && !anyOwesCredit()) {
            return LOCAL_PARK_NANOS;
        }
        if (mode == PollerMode.SLEEPING) {
            return LONGEST_PARK_NANOS;
        }
        long waited = System.nanoTime() - idleSince;
        return Math.clamp(waited / 16, SHORTEST_PARK_NANOS, LONGEST_PARK_NANOS);
    }

    private boolean anyOwesCredit() {
        for (Inbox inbox : inboxes) {
            if (inbox.owesCredit()) {
                return true;
            }
        }
        return false;
    }

    @Override
    public void close() {
        running = false;
        LockSupport.unpark(thread);
        if (!Thread.currentThread().equals(thread)) {
            boolean interrupted = false;
            try {
                thread.join(5_000);
            } catch (InterruptedException e) {
                interrupted = true;
            }
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
