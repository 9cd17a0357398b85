package dev.penstock.actors.spi;

import dev.penstock.actors.precision.Overflow;
import dev.penstock.schedules.ir.Schedule;
import java.util.List;
import java.util.OptionalDouble;

/**
 * Watches a run. Called from one thread at a time, in the order of events; must never throw. It has
 * a thread of its own: the run waits for it only when it is a thousand events behind, and at the
 * end. What a listener does not override does not concern it.
 */
public interface RunListener {
    /**
     * All ranks are open; the first pass follows.
     *
     * @param devices entry r describes the device of rank r
     * @param fingerprint of the kernels, the same on all ranks
     */
    default void onOpened(List<String> devices, String fingerprint) {}

    /**
     * Where all ranks live from now on, told before the first pass that follows.
     *
     * @param homes by rank, the lowest rank that lives in the same process
     */
    default void onPlaced(List<Integer> homes) {}

    /** A step was committed and applied everywhere. */
    default void onStep(StepReport report) {}

    /** A step overflowed and was skipped everywhere: {@link #onStep} is not told of it. */
    default void onOverflow(Overflow overflow) {}

    /**
     * The held-out texts were evaluated after {@code step} training steps.
     *
     * @param loss mean over all evaluation batches
     * @param accuracy share of the texts whose class was found; empty unless the model classifies
     */
    default void onEvaluation(long step, double loss, OptionalDouble accuracy) {}

    /** A checkpoint was published. */
    default void onCheckpoint(long step, long bytes, long nanos) {}

    /** A checkpoint could not be written; training goes on and the previous one is intact. */
    default void onCheckpointFailed(long step, String reason) {}

    /** Something died or broke: the run recovers in this epoch. {@link #onRecovery} follows. */
    default void onRecovering(int epoch, String cause) {}

    /** The run came back from a death or a broken link; steps after its {@code fromStep} follow. */
    default void onRecovery(RecoveryReport report) {}

    /**
     * The run follows another plan of its own from the next step on; {@link #onRecovering} and
     * {@link #onRecovery} follow, since all ranks begin anew from a checkpoint.
     *
     * @param training what a step runs from now on
     * @param completed the newest step that followed the plan before
     */
    default void onRevised(PlanRevision revision, Schedule training, long completed) {}

    /**
     * Who takes part: when that changes, and every few seconds with the age of the leases.
     *
     * @param members ranks that live somewhere, rising, then spares
     */
    default void onMembers(List<RunMember> members) {}

    /** Nothing moved for a while: who waits for what, from whom, since when. */
    default void onStall(String report) {}

    /** What another plan has won, or why a better one is not taken; in a line for people. */
    default void onPlanNote(String note) {}

    /**
     * A rank has computed slower than it should for several steps; told again only when it was well
     * in between.
     *
     * @param step last one that was looked at
     * @param factor how many times its fair share its computations take, beside the other ranks'
     */
    default void onStraggler(int rank, long step, double factor) {}
}
