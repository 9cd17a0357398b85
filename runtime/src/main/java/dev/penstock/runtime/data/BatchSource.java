package dev.penstock.runtime.data;

import dev.penstock.actors.spi.StepKind;

/**
 * The source of a stage's tokens. The result of a call depends only on its arguments, never on
 * earlier calls: a resumed run, a second process and a repeated step read the same tokens. Safe to
 * use from any thread.
 */
public interface BatchSource {
    /**
     * Fills one micro-batch.
     *
     * @param kind training data or held-out data
     * @param step the training step from 1; for an evaluation, the index of the held-out batch from
     *     0
     * @param microBatch from 0 within the step
     * @param tokens receives {@code [sequences of a micro-batch][context + 1]} row-major: the first
     *     {@code context} of a row are the input, the last {@code context} the targets; filled to
     *     its end
     */
    void read(StepKind kind, long step, int microBatch, int[] tokens);

    /**
     * Returns how many sequences a step has: the first ones of its micro-batches. The others do not
     * exist, and {@link #read} returns arbitrary tokens of the vocabulary for them.
     *
     * @param kind as of {@link #read}
     * @param step as of {@link #read}
     * @param full how many it has unless the data ends before
     * @return at least 1
     */
    default int sequences(StepKind kind, long step, int full) {
        return full;
    }
}
