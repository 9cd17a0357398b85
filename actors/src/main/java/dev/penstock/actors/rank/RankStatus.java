package dev.penstock.actors.rank;

import dev.penstock.actors.collective.RankWaits;
import dev.penstock.actors.spi.StepKind;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * What a shard is at, written by its own thread and read by the stage actor for leases, so that a
 * long op is no death.
 */
public final class RankStatus {
    /**
     * One moment.
     *
     * @param collective what it waits for inside an op; null if it does not
     */
    public record Moment(
            RankActivity.State state,
            StepKind kind,
            long pass,
            int position,
            @Nullable String collective,
            long sinceNanoTime) {}

    private static final int NONE = -1;

    /** Nobody reads of a shorter wait. */
    private static final long WORTH_TELLING_NANOS = 50_000_000;

    private volatile Moment now =
            new Moment(RankActivity.State.IDLE, StepKind.TRAIN, 0, 0, null, System.nanoTime());

    private volatile int epoch;

    /** The last epoch that the rank has been ordered out of. */
    private volatile int over = NONE;

    /** The epoch that the rank knows; any thread. */
    public int epoch() {
        return epoch;
    }

    void enter(int newEpoch) {
        epoch = newEpoch;
    }

    /**
     * An order is on its way to the rank, which may be waiting inside an op, where it does not see
     * it. The stage actor's thread only.
     */
    public void hear(RankCommand order) {
        int ends =
                switch (order) {
                    case RankCommand.Stop _, RankCommand.Fence _ -> order.epoch();
                    case RankCommand.Prepare _ -> order.epoch() - 1;
                    case RankCommand.BeginPass _,
                            RankCommand.Commit _,
                            RankCommand.Save _,
                            RankCommand.Resume _ ->
                            NONE;
                };
        over = Math.max(over, ends);
    }

    /** How ops of this epoch wait for others. */
    RankWaits waits(int ofEpoch) {
        return new RankWaits() {
            private RankActivity.@Nullable State before;

            @Override
            public boolean isCalledOff() {
                return over >= ofEpoch;
            }

            @Override
            public void waitsFor(String what) {
                before = before == null ? now.state : before;
                inOp(RankActivity.State.WAITING_FOR_MEMBERS, what);
            }

            @Override
            public void goesOn() {
                if (before != null) {
                    inOp(before, null);
                    before = null;
                }
            }
        };
    }

    private void inOp(RankActivity.State state, @Nullable String collective) {
        Moment old = now;
        boolean same = old.state == state;
        now =
                new Moment(
                        state,
                        old.kind,
                        old.pass,
                        old.position,
                        collective,
                        same ? old.sinceNanoTime : System.nanoTime());
    }

    /** Says what the rank waits for if it has waited for long. The shard's thread only. */
    void explain(Supplier<String> what) {
        if (System.nanoTime() - now.sinceNanoTime > WORTH_TELLING_NANOS) {
            inOp(now.state, what.get());
        }
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
            now = new Moment(state, kind, pass, position, null, System.nanoTime());
        }
    }
}
