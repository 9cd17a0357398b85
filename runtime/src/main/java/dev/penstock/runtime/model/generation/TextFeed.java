package dev.penstock.runtime.model.generation;

import dev.penstock.runtime.model.shape.FeedRows;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The texts that stages of inference read and continue, shared by all of them. Safe to use from any
 * thread.
 */
public interface TextFeed {
    /** Texts under way. */
    int texts();

    /** Most rows of each slice, over all micro-batches: those of the tensors between stages. */
    List<Integer> sliceRows();

    /** Most tokens of a text whose keys and values are kept at a time. */
    int cachedTokens();

    /**
     * What the texts of a micro-batch feed in this slice, those among them too that have ended: all
     * stages see the same rows.
     *
     * @return null if none has anything to feed, or all have ended
     */
    @Nullable FeedRows feed(int microBatch, int slice);

    /**
     * The tokens of a unit's rows. Waits until they are all chosen: for the first stage.
     *
     * @return those of texts that have ended are anything; null if all have
     * @throws IllegalStateException if no stage moves for too long
     */
    int @Nullable [] await(FeedRows feeds);

    /**
     * Chooses the token after a text's feed: for the last stage.
     *
     * @param logits of every token of the vocabulary
     */
    void choose(int text, float[] logits);

    /** Ends all texts where they are: what is still to be fed is left out. */
    void stop();
}
