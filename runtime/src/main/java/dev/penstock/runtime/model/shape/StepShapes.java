package dev.penstock.runtime.model.shape;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * The sizes of a step's micro-batches, whose sequences may be shorter than the context. Memory is
 * there for whole sequences; shorter ones use the beginning of it. Not thread-safe.
 */
public final class StepShapes {
    private final BatchShape whole;
    private final BatchShape[] ofMicroBatch;
    private final Map<Integer, BatchShape> byTokens = new HashMap<>();

    /** All sequences are whole. */
    public StepShapes(BatchShape whole) {
        this.whole = whole;
        ofMicroBatch = new BatchShape[whole.microBatches()];
        Arrays.fill(ofMicroBatch, whole);
        byTokens.put(whole.context(), whole);
    }

    /** Returns the size of a batch of whole sequences. */
    public BatchShape whole() {
        return whole;
    }

    /**
     * From now on the sequences of a micro-batch have this many tokens.
     *
     * @param tokens from 1 to the context, such that every slice is its share of them
     */
    public void set(int microBatch, int tokens) {
        ofMicroBatch[microBatch] = byTokens.computeIfAbsent(tokens, whole::ofTokens);
    }

    /** Returns the size of a batch whose micro-batches are all like this one. */
    public BatchShape of(int microBatch) {
        return ofMicroBatch[microBatch];
    }
}
