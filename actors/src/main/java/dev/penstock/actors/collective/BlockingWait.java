package dev.penstock.actors.collective;

import dev.penstock.actors.dataplane.DataPlaneException;
import java.time.Duration;

/** Waits inside an op, in the time of the rank that waits. */
public final class BlockingWait {
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
        WaitingTime time = waits.time();
        long begun = time.nanos();
        long told = begun;
        for (int turn = 0; !collective.advance(); turn++) {
            if (waits.isCalledOff()) {
                throw new DataPlaneException(
                        "rank %d: called off; %s".formatted(rank, collective.describe()));
            }
            long now = time.nanos();
            if (now - begun > limit.toNanos() && waits.isUnderWay()) {
                begun = now;
            }
            if (now - begun > limit.toNanos()) {
                throw new DataPlaneException(
                        "rank %d gave up after %.1f s: %s"
                                .formatted(rank, (now - begun) / 1e9, collective.describe()));
            }
            if (now - told > WORTH_TELLING_NANOS) {
                told = now;
                waits.waitsFor(collective.describe());
            }
            time.pass(turn);
        }
    }
}
