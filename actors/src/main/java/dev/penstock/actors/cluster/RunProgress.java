package dev.penstock.actors.cluster;

import java.time.Duration;

/** How far one run is, and since when. */
final class RunProgress {
    private final ClusterRun made;
    private final long sinceNanos;
    private RunState state;
    private String detail = "";
    private long step;
    private long changedNanos;
    private long stateSinceNanos;

    RunProgress(ClusterRun made, RunState state, long now) {
        this.made = made;
        this.sinceNanos = now;
        this.state = state;
        this.step = made.completed();
        this.changedNanos = now;
        this.stateSinceNanos = now;
    }

    /**
     * @param nodes that the run works on
     */
    RunStanding standing(int nodes) {
        return new RunStanding(
                made.name(),
                state,
                step,
                made.plan().steps().last(),
                nodes,
                age(changedNanos).toMillis(),
                made.directory().toString(),
                detail);
    }

    /**
     * @param why may be empty
     */
    void enter(RunState next, String why, long now) {
        stateSinceNanos = next == state ? stateSinceNanos : now;
        changedNanos = now;
        state = next;
        detail = why;
    }

    /** The same state, with other words. */
    void say(String why, long now) {
        enter(state, why, now);
    }

    void reached(long newStep, long now) {
        step = newStep;
        changedNanos = now;
    }

    RunState state() {
        return state;
    }

    boolean is(RunState asked) {
        return state == asked;
    }

    String detail() {
        return detail;
    }

    long step() {
        return step;
    }

    Duration age(long now) {
        return Duration.ofNanos(now - sinceNanos);
    }

    Duration inState(long now) {
        return Duration.ofNanos(now - stateSinceNanos);
    }
}
