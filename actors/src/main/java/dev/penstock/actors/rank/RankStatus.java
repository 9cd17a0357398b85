package dev.penstock.actors.rank;

import dev.penstock.actors.collective.RankWaits;
import dev.penstock.actors.collective.WaitingTime;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StepKind;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * What a shard is doing, written by its own thread and read by the stage actor for leases, so that
 * a long op is not taken for a death.
 */
public final class RankStatus {
    /**
     * The status at one moment.
     *
     * @param collective what it is waiting for inside an op; null if it is not
     */
    public record Moment(
            RankActivity.State state,
            StepKind kind,
            long pass,
            int position,
            @Nullable String collective,
            long sinceNanoTime) {}

    private static final int NONE = -1;

    /** Shorter waits are not reported. */
    private static final long WORTH_TELLING_NANOS = 50_000_000;

    private final WaitingTime time;
    private volatile Moment now;

    /** What is on its way to the rank and takes its time by plan. */
    private volatile Supplier<Optional<String>> links = Optional::empty;

    private volatile int epoch;

    /** That the rank follows, once it is known. */
    private volatile @Nullable RunPlan plan;

    /** The last epoch that the rank was ordered to leave. */
    private volatile int over = NONE;

    /** How many of the rank's strands are known to wait inside an op. */
    private int waiting;

    /** The state before the first of them did. */
    private RankActivity.State beforeWait = RankActivity.State.IDLE;

    /** Of a rank on a thread of its own. */
    public RankStatus() {
        this(WaitingTime.OF_THREAD);
    }

    /** Of a rank that waits in this time. */
    public RankStatus(WaitingTime time) {
        this.time = time;
        this.now = new Moment(RankActivity.State.IDLE, StepKind.TRAIN, 0, 0, null, time.nanos());
    }

    /** Returns the epoch that the rank knows; any thread. */
    public int epoch() {
        return epoch;
    }

    void enter(int newEpoch) {
        epoch = newEpoch;
    }

    /** Returns the plan that the rank follows, or this one before it has begun; any thread. */
    RunPlan planOr(RunPlan first) {
        RunPlan followed = plan;
        return followed == null ? first : followed;
    }

    void follow(RunPlan followed) {
        plan = followed;
    }

    /**
     * Notes a command that is on its way to the rank, which may be waiting inside an op and would
     * not see it. The stage actor's thread only.
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

    /** Learns what tells of the links that the rank has from now on. */
    void watch(Supplier<Optional<String>> newLinks) {
        links = newLinks;
    }

    /** Returns {@link dev.penstock.actors.dataplane.Endpoint#underWay}; any thread. */
    public Optional<String> underWay() {
        return links.get();
    }

    /** Returns how ops of this epoch wait for other ranks; a strand has one of its own. */
    RankWaits waits(int ofEpoch) {
        return new RankWaits() {
            private boolean told;

            @Override
            public boolean isCalledOff() {
                return over >= ofEpoch;
            }

            @Override
            public void waitsFor(String what) {
                strandWaits(!told, what);
                told = true;
            }

            @Override
            public boolean isUnderWay() {
                return underWay().isPresent();
            }

            @Override
            public void goesOn() {
                if (told) {
                    strandGoesOn();
                    told = false;
                }
            }

            @Override
            public WaitingTime time() {
                return time;
            }
        };
    }

    private synchronized void strandWaits(boolean anew, String what) {
        if (anew && waiting++ == 0) {
            beforeWait = now.state;
        }
        inOp(RankActivity.State.WAITING_FOR_MEMBERS, what);
    }

    private synchronized void strandGoesOn() {
        if (--waiting == 0) {
            inOp(beforeWait, null);
        }
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
                        same ? old.sinceNanoTime : time.nanos());
    }

    /** Reports what the rank is waiting for if it has waited for long. The shard's thread only. */
    void explain(Supplier<String> what) {
        if (time.nanos() - now.sinceNanoTime > WORTH_TELLING_NANOS) {
            inOp(now.state, what.get());
        }
    }

    /** Notes that a part of what the rank is doing is done. The shard's thread only. */
    void moved() {
        Moment old = now;
        now = new Moment(old.state, old.kind, old.pass, old.position, old.collective, time.nanos());
    }

    /** Returns the latest moment; any thread. */
    public Moment now() {
        return now;
    }

    /** Updates the status; an unchanged state keeps its time. The shard's thread only. */
    void set(RankActivity.State state, StepKind kind, long pass, int position) {
        Moment old = now;
        boolean same =
                old.state == state
                        && old.kind == kind
                        && old.pass == pass
                        && old.position == position;
        if (!same) {
            now = new Moment(state, kind, pass, position, null, time.nanos());
        }
    }
}
