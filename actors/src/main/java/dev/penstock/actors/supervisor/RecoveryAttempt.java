package dev.penstock.actors.supervisor;

import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.RecoveryReport.Restart;
import java.util.List;
import java.util.OptionalLong;

/**
 * One recovery, from the first death to the last rank back, over one epoch or several. What holds
 * for a single epoch is in its {@link RecoveryPhase}.
 *
 * @param dead ranks that died in any of the epochs
 * @param detectNanos the longest time that it took to see one of them dead
 * @param sparesUsed processes that waited as spares and host ranks now
 * @param wentBack whether all ranks went back to a checkpoint, in any of the epochs
 * @param crowds whether missing ranks go to nodes that have others: no other nodes come
 */
record RecoveryAttempt(
        Origin origin,
        RankSet dead,
        long detectNanos,
        int sparesUsed,
        boolean wentBack,
        boolean crowds,
        RecoveryWaits waits) {
    /**
     * How it began.
     *
     * @param committed newest step whose commit was told
     */
    record Origin(String cause, Reason reason, long beganNanos, long committed) {}

    /** What a recovery is for, as far as that decides what it does. */
    sealed interface Reason {
        /** Ranks or links are gone. */
        record Loss() implements Reason {}

        /** The same, before all ranks were open for the first time. */
        record LossInPlacing() implements Reason {}

        /** This step was not finite, and is left out if nothing has to be done again. */
        record LeaveOut(long step) implements Reason {}

        /** All ranks are to go back to the checkpoint, although none died. */
        record GoBack() implements Reason {}

        /**
         * Ranks do each other's work in another way; all that take part already keep what they
         * hold.
         *
         * @param joining ranks that take part from now on
         */
        record Rewire(RankSet joining) implements Reason {}

        /**
         * This supervisor has not seen the run before.
         *
         * @param gathersUntilNanos until then, nodes may say that they host ranks which nobody else
         *     has
         * @param asked whether every node was asked: what nobody has by then lives nowhere
         */
        record TakeUp(long gathersUntilNanos, boolean asked) implements Reason {}
    }

    static RecoveryAttempt begin(Origin origin) {
        return new RecoveryAttempt(origin, RankSet.NONE, 0, 0, false, false, RecoveryWaits.NONE);
    }

    // ---- what becomes of it ---------------------------------------------------------------------

    RecoveryAttempt dead(RankSet ranks) {
        return new RecoveryAttempt(origin, ranks, detectNanos, sparesUsed, wentBack, crowds, waits);
    }

    /** More ranks are dead. */
    RecoveryAttempt died(List<Integer> ranks) {
        return dead(dead.with(ranks));
    }

    /** A rank is dead. */
    RecoveryAttempt died(int rank) {
        return dead(dead.with(rank));
    }

    /** A rank that nobody had heard of lives. */
    RecoveryAttempt lives(int rank) {
        return dead(dead.without(rank));
    }

    RecoveryAttempt detectedAfter(long nanos) {
        return new RecoveryAttempt(
                origin, dead, Math.max(detectNanos, nanos), sparesUsed, wentBack, crowds, waits);
    }

    RecoveryAttempt tookSpares(int more) {
        return new RecoveryAttempt(
                origin, dead, detectNanos, sparesUsed + more, wentBack, crowds, waits);
    }

    RecoveryAttempt goneBack() {
        return new RecoveryAttempt(origin, dead, detectNanos, sparesUsed, true, crowds, waits);
    }

    RecoveryAttempt waits(RecoveryWaits now) {
        return new RecoveryAttempt(origin, dead, detectNanos, sparesUsed, wentBack, crowds, now);
    }

    /** No node comes for a missing rank. */
    RecoveryAttempt crowding() {
        return new RecoveryAttempt(origin, dead, detectNanos, sparesUsed, wentBack, true, waits);
    }

    // ---- questions ------------------------------------------------------------------------------

    /**
     * Whether these deaths are of one recovery with those that began it, as of processes that were
     * killed at once. A rank has only one such death: one that was started again and dies again is
     * no part of what began it, so that a recovery cannot go on for ever.
     */
    boolean bears(List<Integer> gone) {
        return origin.reason() instanceof Reason.Loss
                && !dead.isEmpty()
                && gone.stream().noneMatch(dead::contains);
    }

    /** Whether anything is gone; else the ranks only begin anew. */
    boolean isOfALoss() {
        return !dead.isEmpty()
                || !(origin.reason() instanceof Reason.GoBack
                        || origin.reason() instanceof Reason.Rewire);
    }

    String cause() {
        return origin.cause();
    }

    /** Whether ranks that nobody has heard of may still be found. */
    boolean gathersAt(long now) {
        return origin.reason() instanceof Reason.TakeUp(long until, boolean _) && now < until;
    }

    /** Whether a rank that nobody has heard of is dead, and not only silent. */
    boolean knowsAllAt(long now) {
        return origin.reason() instanceof Reason.TakeUp(long _, boolean asked)
                && asked
                && !gathersAt(now);
    }

    boolean takesUp() {
        return origin.reason() instanceof Reason.TakeUp;
    }

    /** Whether a rank takes part from now on, and has not died since. */
    boolean joins(int rank) {
        return origin.reason() instanceof Reason.Rewire(RankSet joining)
                && joining.contains(rank)
                && !dead.contains(rank);
    }

    /** Whether ranks are lost, and are not away because they are to be elsewhere. */
    boolean hasLosses() {
        return !wantsBack() && !(origin.reason() instanceof Reason.LossInPlacing);
    }

    boolean wantsBack() {
        return origin.reason() instanceof Reason.GoBack;
    }

    /** Whether the listener has not heard yet that all ranks were open. */
    boolean opens() {
        return origin.reason() instanceof Reason.LossInPlacing || takesUp();
    }

    /** The step that was not finite and is left out; none if all is done again. */
    OptionalLong leftOut() {
        return origin.reason() instanceof Reason.LeaveOut(long step) && !wentBack
                ? OptionalLong.of(step)
                : OptionalLong.empty();
    }

    /**
     * What is told when all ranks are back.
     *
     * @param last what the ranks restarted from in the last epoch
     */
    RecoveryReport report(Restart last, int epoch, long completed, long now) {
        return new RecoveryReport(
                cause(),
                epoch,
                dead.list(),
                restart(last),
                detectNanos,
                now - origin.beganNanos(),
                wentBack ? origin.committed() - completed : 0,
                completed);
    }

    private Restart restart(Restart last) {
        if (wentBack) {
            return Restart.CHECKPOINT;
        }
        return leftOut().isPresent() && last == Restart.MEMORY ? Restart.SKIPPED : last;
    }
}
