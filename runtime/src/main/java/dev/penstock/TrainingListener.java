package dev.penstock;

import java.nio.file.Path;

/**
 * Watches a training. Called in the order of events, on a thread of the training that does nothing
 * else. A listener that is slow does not delay training: what it has yet to hear waits in memory,
 * some hundred bytes an event. The training's end waits until it has heard everything, says so in
 * the log every ten seconds, and is itself the run's own, whatever was heard when; an interrupt of
 * the training thread ends that wait. A listener that throws, even an {@link Error}, stops the
 * training, which then throws what it threw.
 */
public interface TrainingListener {
    /**
     * The training begins.
     *
     * @param training stops it, from any thread
     */
    default void onBegin(Training training) {}

    /** A step was committed and applied everywhere. */
    default void onStep(TrainingStep step) {}

    /** The loss on held-out tokens was measured, after so many training steps. */
    default void onHeldOutLoss(long step, double loss) {}

    /** A checkpoint was saved; it is the newest one of its run. */
    default void onCheckpoint(long step, Path checkpoint) {}

    /** Something that people may want to know, as one line: a damaged checkpoint, a recovery. */
    default void onNote(String line) {}

    /** The training ended as it should; not called where it fails. */
    default void onEnd(TrainingEnd end) {}
}
