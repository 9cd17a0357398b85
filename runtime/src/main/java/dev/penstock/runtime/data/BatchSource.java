package dev.penstock.runtime.data;

import dev.penstock.actors.spi.StepKind;
import java.util.Arrays;

/**
 * The source of a stage's tokens. The result of a call depends only on its arguments, never on
 * earlier calls: a resumed run, a second process and a repeated step read the same tokens. Safe to
 * use from any thread.
 */
public interface BatchSource {
    /** Mark of a token with which a document begins. */
    byte BEGINS = 1;

    /** Mark of a token that the loss does not count as a target. */
    byte UNCOUNTED = 2;

    /** Mark of a token of the second of two texts. */
    byte SECOND = 4;

    /**
     * Fills one micro-batch.
     *
     * @param kind training data or held-out data
     * @param step the training step from 1; for an evaluation, the index of the held-out batch from
     *     0
     * @param microBatch from 0 within the step
     * @param tokens receives {@code [sequences of a micro-batch][context + 1]} row-major: the first
     *     {@code context} of a row are the input, the last {@code context} the targets, or the
     *     first ones where they are {@link #inPlace}; filled to its end
     */
    void read(StepKind kind, long step, int microBatch, int[] tokens);

    /**
     * Returns whether the target of a token is what stands in its own place, which the input may
     * hide; otherwise it is the next token.
     */
    default boolean inPlace() {
        return false;
    }

    /**
     * Same as {@link #read} with what the model reads: where targets are {@link #inPlace}, some of
     * them are hidden.
     */
    default void inputs(StepKind kind, long step, int microBatch, int[] tokens) {
        read(kind, step, microBatch, tokens);
    }

    /** Returns whether {@link #tokens} are not always those of the context. */
    default boolean unequal() {
        return false;
    }

    /**
     * Returns how many tokens the sequences of a micro-batch have, the first ones of their rows:
     * what follows are inputs of no target that counts.
     *
     * @param kind as of {@link #read}, and so are the others
     * @param context how many they have unless all of them are shorter
     * @return at least 1
     */
    default int tokens(StepKind kind, long step, int microBatch, int context) {
        return context;
    }

    /**
     * Returns the number of the row of the data that a sequence is, from 0; -1 where rows do not
     * come again, and of held-out data.
     *
     * @param kind as of {@link #read}
     * @param sequence of the micro-batch, from 0
     */
    default int row(StepKind kind, long step, int microBatch, int sequence) {
        return -1;
    }

    /** Returns whether the documents in a row are to be trained on each for itself. */
    default boolean packed() {
        return false;
    }

    /** Returns whether there are tokens that the loss does not count. */
    default boolean masked() {
        return false;
    }

    /** Returns whether a token with these marks counts as a target. */
    default boolean counts(int marks) {
        return (marks & UNCOUNTED) == 0 && !(packed() && (marks & BEGINS) != 0);
    }

    /**
     * Fills in what is to be known of a micro-batch's tokens besides.
     *
     * @param kind as of {@link #read}, and so are the others
     * @param marks receives a sum of {@link #BEGINS}, {@link #UNCOUNTED} and {@link #SECOND} for
     *     each token; all are 0 unless the source is {@link #packed} or {@link #masked}
     */
    default void marks(StepKind kind, long step, int microBatch, byte[] marks) {
        Arrays.fill(marks, (byte) 0);
    }

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
