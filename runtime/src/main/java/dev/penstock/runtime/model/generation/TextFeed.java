package dev.penstock.runtime.model.generation;

import dev.penstock.runtime.model.shape.FeedRows;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The texts that stages of inference read and continue, shared by all of them. Safe to use from any
 * thread.
 */
public interface TextFeed {
    /** Returns how many texts are in flight at most. */
    int texts();

    /**
     * Begins a pass; every stage says so before its first feed. A pass may be repeated after a
     * failure.
     */
    default void begin(int stage, long pass) {}

    /**
     * Returns the maximum rows of each slice over all micro-batches, which is the size of the
     * tensors between stages.
     */
    List<Integer> sliceRows();

    /** Returns the maximum number of tokens of a text whose keys and values are kept at a time. */
    int cachedTokens();

    /**
     * Returns how many tokens of all texts have room for their keys and values: rows of what each
     * block of layers keeps. A text in flight has some of them, side by side, for itself.
     */
    default int keptTokens() {
        return texts() * cachedTokens();
    }

    /** Returns how many places tokens have, from 0 on. */
    default int places() {
        return cachedTokens();
    }

    /**
     * Returns what the texts of a micro-batch feed in this slice, including texts that have ended:
     * all stages see the same rows.
     *
     * @return null if none has anything to feed, or all have ended
     */
    @Nullable FeedRows feed(int microBatch, int slice);

    /**
     * Waits until the tokens of a unit's rows have all been chosen and returns them; for the first
     * stage.
     *
     * @return arbitrary tokens for texts that have ended; null if all have
     * @throws IllegalStateException if no stage makes progress for too long
     */
    int @Nullable [] await(FeedRows feeds);

    /** Returns how many of the last rows of a run {@link #choose} receives. */
    default int choosing(FeedRows.Run run) {
        return run.feed().chooses() ? 1 : 0;
    }

    /** Returns how many rows have logits at a time. */
    default int rowsWithLogits() {
        return texts();
    }

    /**
     * Chooses the token after one of a text's; for the last stage. Tokens of a text come in their
     * order.
     *
     * @param place index of the token in the text
     * @param logits one for every token of the vocabulary
     */
    void choose(int text, int place, float[] logits);

    /**
     * Ends all texts where they are, and says why: the pass under way will not be finished. Another
     * may begin later.
     *
     * @param cause what happened, in a sentence; empty if it was said before
     */
    default void interrupt(String cause) {
        stop();
    }

    /** Ends all texts where they are: tokens not yet fed are left out. */
    void stop();
}
