package dev.penstock.actors.collective;

import java.util.concurrent.locks.LockSupport;

/** The time in which a rank waits inside an op: that of its thread, or a simulation's. */
public interface WaitingTime {
    /**
     * A thread's. Others are mostly microseconds behind, so it looks again at once at first; then
     * it leaves the core to them.
     */
    WaitingTime OF_THREAD =
            new WaitingTime() {
                private static final int SPINS = 200;
                private static final int YIELDS = 50;
                private static final long NAP_NANOS = 20_000;

                @Override
                public long nanos() {
                    return System.nanoTime();
                }

                @Override
                public void pass(int turn) {
                    if (turn < SPINS) {
                        Thread.onSpinWait();
                    } else if (turn < SPINS + YIELDS) {
                        Thread.yield();
                    } else {
                        LockSupport.parkNanos(NAP_NANOS);
                    }
                }
            };

    /** Now, of a clock that begins somewhere and never goes back. */
    long nanos();

    /**
     * Lets some time pass before the next look.
     *
     * @param turn looks in this wait before, from 0
     */
    void pass(int turn);
}
