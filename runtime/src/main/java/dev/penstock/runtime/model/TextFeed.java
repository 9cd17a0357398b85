package dev.penstock.runtime.model;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The texts that stages of inference read and continue, shared by all of them. Safe to use from any
 * thread.
 */
public interface TextFeed {
    /** Texts under way: micro-batches of the order. */
    int texts();

    /** Most tokens of each slice: rows of the tensors between stages. */
    List<Integer> sliceRows();

    /** Most tokens of a text whose keys and values are kept at a time. */
    int cachedTokens();

    /** What a text feeds in this slice; null if it has nothing to feed, or has ended. */
    @Nullable Feed feed(int text, int slice);

    /**
     * The tokens of a feed. Waits until they are all chosen: for the first stage.
     *
     * @return null if the text has ended
     * @throws IllegalStateException if no stage moves for too long
     */
    int @Nullable [] await(int text, Feed feed);

    /**
     * Chooses the token after a feed: for the last stage.
     *
     * @param logits of every token of the vocabulary
     */
    void choose(int text, float[] logits);

    /** Ends all texts where they are: what is still to be fed is left out. */
    void stop();
}
