package dev.penstock.actors.supervisor;

import dev.penstock.actors.mirror.MirrorLayout;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.rank.StateSource;
import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.RecoveryReport.Restart;
import java.util.BitSet;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** One recovery, from the first death to the last rank back, over one epoch or several. */
final class RecoveryAttempt {
    final String cause;
    final long beganNanos;

    /** Since when answers to Prepare are awaited; while the run parks, there is no hurry. */
    long raisedNanos;

    private final long committedBefore;

    /** Ranks that died in any of the epochs. */
    final BitSet dead = new BitSet();

    /** Answers of this epoch, by rank. */
    final Map<Integer, RankEvent.Prepared> prepared = new TreeMap<>();

    /** Ranks that a process was asked for, in this epoch. */
    final BitSet askedFor = new BitSet();

    /** Where missing ranks would go to their mirrors' holders, and there is to be room. */
    Map<Integer, NodeInfo> roomAskedFor = Map.of();

    /** Whether there is room there; empty while that is asked. */
    Optional<Boolean> hasRoom = Optional.empty();

    /** Ranks that are open again in this epoch. */
    final BitSet back = new BitSet();

    /** What the run restarts from; null while ranks prepare. */
    @Nullable Restart restart;

    StateSource start = new StateSource.Kept();
    MirrorLayout mirrors = MirrorLayout.none(0);
    long decidedNanos;
    long detectNanos;
    long skippedStep = -1;
    long parkedSinceNanos = -1;
    long nextParkReportNanos = Long.MIN_VALUE;
    int sparesUsed;

    /** Since when ranks wait for room; -1 if none ever did. */
    long noRoomSinceNanos = -1;

    /** Whether all are to go back to the checkpoint although nobody died. */
    boolean wantsBack;

    /** Whether all did go back, in any of the epochs. */
    boolean wentBack;

    /** Whether this supervisor has not seen the run before. */
    boolean takesUp;

    /** Whether the run was not all open before. */
    boolean opens;

    /** Until then, nodes may say that they host ranks which nobody else has. */
    long gathersUntilNanos;

    /**
     * @param committed newest step whose commit was told
     */
    RecoveryAttempt(String cause, long now, long committed) {
        this.cause = cause;
        this.beganNanos = now;
        this.committedBefore = committed;
    }

    /** Whether ranks that another supervisor hosted are still taken in. */
    boolean gathers() {
        return takesUp && restart == null;
    }

    /** Forgets what was answered and decided: a higher epoch begins. */
    void startOver() {
        restart = null;
        prepared.clear();
        askedFor.clear();
        roomAskedFor = Map.of();
        hasRoom = Optional.empty();
        back.clear();
    }

    /** Whether a rank did what it was asked last: to prepare, or to come back. */
    boolean hasAnswered(int rank) {
        return restart == null ? prepared.containsKey(rank) : back.get(rank);
    }

    /** The prepared rank that holds a mirror of this one which reaches the step. */
    Optional<Integer> holder(int rank, long step) {
        return prepared.values().stream()
                .filter(answer -> holds(answer, rank, step))
                .map(RankEvent.Prepared::rank)
                .findFirst();
    }

    static boolean holds(RankEvent.Prepared answer, int rank, long step) {
        return answer.mirrors().stream()
                .anyMatch(mirror -> mirror.rank() == rank && mirror.reaches(step));
    }

    /** Whether every prepared rank has seen the step, or will when its commit is told again. */
    boolean allReach(long step) {
        return prepared.values().stream().allMatch(answer -> answer.state().reaches(step));
    }

    /** Whether a step that was not finite is left out, for nothing was done again. */
    boolean leavesOut() {
        return skippedStep > 0 && !wentBack;
    }

    private Restart restart() {
        Restart last = Objects.requireNonNull(restart);
        if (wentBack) {
            return Restart.CHECKPOINT;
        }
        return leavesOut() && last == Restart.MEMORY ? Restart.SKIPPED : last;
    }

    /** What is told when all ranks are back. */
    RecoveryReport report(int epoch, long completed, long now) {
        return new RecoveryReport(
                cause,
                epoch,
                dead.stream().boxed().toList(),
                restart(),
                detectNanos,
                now - beganNanos,
                wentBack ? committedBefore - completed : 0,
                completed);
    }
}
