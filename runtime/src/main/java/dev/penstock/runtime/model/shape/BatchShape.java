package dev.penstock.runtime.model.shape;

import dev.penstock.cuda.device.TokenBlocks;
import java.util.List;

/**
 * The size of a step's batch and how it is cut.
 *
 * @param sequences sequences of one micro-batch, B
 * @param microBatches micro-batches of one step, M
 * @param sliceLengths tokens of each token slice of a sequence; they add up to the context
 * @param reductionBlock tokens of the grid on which sums over tokens are taken; slices whose edges
 *     fall on it give the bits of the whole. More than the context means the context.
 * @param logits how many of them exist at the same time
 */
public record BatchShape(
        int sequences,
        int microBatches,
        List<Integer> sliceLengths,
        int reductionBlock,
        LogitsRoom logits) {
    public BatchShape {
        sliceLengths = List.copyOf(sliceLengths);
        if (sequences < 1 || microBatches < 1 || reductionBlock < 1) {
            throw new IllegalArgumentException(
                    "a batch needs sizes of 1 or more, got %d sequences, %d micro-batches, a reduction block of %d"
                            .formatted(sequences, microBatches, reductionBlock));
        }
        if (sliceLengths.isEmpty() || sliceLengths.stream().anyMatch(n -> n < 1)) {
            throw new IllegalArgumentException(
                    "a sequence needs slices of 1 token or more, got %s".formatted(sliceLengths));
        }
    }

    /** A batch whose sums are all taken on the grid. */
    public BatchShape(
            int sequences, int microBatches, List<Integer> sliceLengths, int reductionBlock) {
        this(sequences, microBatches, sliceLengths, reductionBlock, LogitsRoom.ON_GRID);
    }

    /** Returns a batch of whole sequences. */
    public static BatchShape unsliced(
            int sequences, int microBatches, int context, int reductionBlock) {
        return new BatchShape(sequences, microBatches, List.of(context), reductionBlock);
    }

    /**
     * Returns the same batch with shorter sequences, whose slices are the same shares of them.
     *
     * @param tokens of a sequence, at most the context
     */
    public BatchShape ofTokens(int tokens) {
        int context = context();
        if (tokens > context
                || sliceLengths.stream().anyMatch(n -> (long) n * tokens % context != 0)) {
            throw new IllegalArgumentException(
                    "expected sequences of at most %d tokens that can be cut like %s, got %d"
                            .formatted(context, sliceLengths, tokens));
        }
        return new BatchShape(
                sequences,
                microBatches,
                sliceLengths.stream().map(n -> (int) ((long) n * tokens / context)).toList(),
                reductionBlock,
                logits);
    }

    /**
     * Returns the least multiple of {@code wanted} such that sequences whose lengths are multiples
     * of it can be cut like these: every slice is its share, and where the edges of slices are on
     * the grid they stay there, so that sums are taken as for whole sequences.
     *
     * @param shards that divide the rows of a unit
     * @return at most the context
     */
    public int lengthStep(int wanted, int shards) {
        int context = context();
        long common = context;
        boolean onGrid = true;
        for (int slice = 0; slice < slices(); slice++) {
            common = greatestCommonDivisor(common, sliceLengths.get(slice));
            onGrid &= firstToken(slice) % grid() == 0;
        }
        long pieces = context / common;
        long step = pieces * (sliced() && onGrid ? grid() : 1);
        step = multiple(step, pieces * shards);
        return (int) Math.min(context, multiple(step, wanted));
    }

    private static long multiple(long a, long b) {
        return a / greatestCommonDivisor(a, b) * b;
    }

    private static long greatestCommonDivisor(long a, long b) {
        return b == 0 ? a : greatestCommonDivisor(b, a % b);
    }

    public int slices() {
        return sliceLengths.size();
    }

    public boolean sliced() {
        return slices() > 1;
    }

    /** Returns the tokens of a sequence, T. */
    public int context() {
        return firstToken(slices());
    }

    /** Returns the position of a slice's first token in its sequence. */
    public int firstToken(int slice) {
        int tokens = 0;
        for (int i = 0; i < slice; i++) {
            tokens += sliceLengths.get(i);
        }
        return tokens;
    }

    /** Returns the rows of a unit of this slice. */
    public int rows(int slice) {
        return sequences * sliceLengths.get(slice);
    }

    /** Returns the rows of the largest unit. */
    public int largestRows() {
        return sequences * sliceLengths.stream().mapToInt(Integer::intValue).max().orElseThrow();
    }

    /** Returns the rows of a whole micro-batch. */
    public int microBatchRows() {
        return sequences * context();
    }

    /** Returns the tokens of one step. */
    public int tokensPerStep() {
        return microBatches * microBatchRows();
    }

    /** Returns the tokens of a block of the grid. */
    public int grid() {
        return Math.min(reductionBlock, context());
    }

    /** Returns how many blocks of the grid a sequence has in the slices before this one. */
    public int blocksBefore(int slice) {
        int blocks = 0;
        for (int i = 0; i < slice; i++) {
            blocks += blocks(i).blocksPerSequence();
        }
        return blocks;
    }

    /**
     * Returns the rows of the states that a retention keeps of a micro-batch: one for each sequence
     * before every block of the grid, and behind the last. Shorter sequences need no more: their
     * slices begin on the grid where these do, and else every edge may cut a block in two.
     */
    public int stateRows() {
        boolean onGrid = true;
        for (int slice = 0; slice < slices(); slice++) {
            onGrid &= firstToken(slice) % grid() == 0;
        }
        int cuts = onGrid ? 0 : slices() - 1;
        return (Math.ceilDiv(context(), grid()) + cuts + 1) * sequences;
    }

    /** Returns the rows of a unit of this slice, as kernels see them. */
    public TokenBlocks blocks(int slice) {
        return new TokenBlocks(sequences, sliceLengths.get(slice), firstToken(slice), grid());
    }
}
