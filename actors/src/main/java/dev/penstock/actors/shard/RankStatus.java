package dev.penstock.actors.shard;

import dev.penstock.actors.spi.StepKind;

/**
 * What a shard is at, written by its own thread and read by the stage actor for leases, so that a
 * long op is no death.
 */
public final class RankStatus {
    /** One moment. */
    public record Moment(
            RankActivity.State state, StepKind kind, long pass, int position, long sinceNanoTime) {}

    private volatile Moment now =
            new Moment(RankActivity.State.IDLE, StepKind.TRAIN, 0, 0, System.nanoTime());

    private volatile int epoch;

    /** The epoch that the rank knows; any thread. */
    public int epoch() {
        return epoch;
    }

    void enter(int newEpoch) {
        epoch = newEpoch;
    }

    /** The latest moment; any thread. */
    public Moment now() {
        return now;
    }

    /** The shard's thread only; keeps the time of an unchanged state. */
    void set(RankActivity.State state, StepKind kind, long pass, int position) {
        Moment old = now;
        boolean same =
                old.state == state
                        && old.kind == kind
                        && old.pass == pass
                        && old.position == position;
        if (!same) {
            now = new Moment(state, kind, pass, position, System.nanoTime());
        }
    }
}
