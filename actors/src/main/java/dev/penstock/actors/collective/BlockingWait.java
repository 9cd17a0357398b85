package dev.penstock.actors.collective;

import dev.penstock.actors.dataplane.DataPlaneException;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;

/**
 * Waits inside an op. Others are mostly microseconds behind, so it looks again at once at first;
 * then it leaves the core to them.
 */
public final class BlockingWait {
    private static final int SPINS = 200;
    private static final int YIELDS = 50;
    private static final long NAP_NANOS = 20_000;

    /** Nobody reads of a shorter wait. */
    private static final long WORTH_TELLING_NANOS = 50_000_000;

    private final int rank;
    private final Duration limit;
    private final RankWaits waits;

    public BlockingWait(int rank, Duration limit, RankWaits waits) {
        this.rank = rank;
        this.limit = limit;
        this.waits = waits;
    }

    public void until(Collective collective) {
        if (collective.advance()) {
            return;
        }
        try {
            waitFor(collective);
        } finally {
            waits.goesOn();
        }
    }

    private void waitFor(Collective collective) {
        long begun = System.nanoTime();
        long told = begun;
        for (int turn = 0; !collective.advance(); turn++) {
            if (turn < SPINS) {
                Thread.onSpinWait();
                continue;
            }
            if (waits.isCalledOff()) {
                throw new DataPlaneException(
                        "rank %d: called off; %s".formatted(rank, collective.describe()));
            }
            long now = System.nanoTime();
            if (now - begun > limit.toNanos()) {
                throw new DataPlaneException(
                        "rank %d gave up after %.1f s: %s"
                                .formatted(rank, (now - begun) / 1e9, collective.describe()));
            }
            if (now - told > WORTH_TELLING_NANOS) {
                told = now;
                waits.waitsFor(collective.describe());
            }
            if (turn < SPINS + YIELDS) {
                Thread.yield();
            } else {
                LockSupport.parkNanos(NAP_NANOS);
            }
        }
    }
}
