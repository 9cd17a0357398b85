package dev.penstock;

import java.nio.file.Path;

/**
 * Watches a training. Called in the order of events, on one thread at a time, which is not the one
 * that trains: a listener that is slow delays nothing but itself, up to a thousand events and at
 * the end. One that throws stops the training, which then throws what it threw.
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
