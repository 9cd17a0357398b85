package dev.penstock.cuda.device;

/**
 * The order in which the rows of a unit are added up, wherever a kernel sums over tokens (weight,
 * bias, gain and embedding gradients). A unit is {@code sequences} runs of {@code tokens} rows;
 * tokens are cut on a fixed grid counted from the start of the <em>sequence</em>, not of the slice,
 * so that a sliced and an unsliced run add in the same order and give the same bits.
 *
 * <pre>
 *   2 sequences of 6 tokens, grid of 2:   rows 0 1 | 2 3 | 4 5   and   6 7 | 8 9 | 10 11
 *   order of blocks:                      4 5, 10 11, 2 3, 8 9, 0 1, 6 7
 * </pre>
 *
 * Blocks last first, inside a block sequences rising, inside a sequence tokens rising.
 *
 * @param sequences sequences of the micro-batch
 * @param tokens tokens of each sequence in this unit (the slice length)
 * @param firstToken position of the slice's first token in its sequence
 * @param grid block length in tokens
 */
public record TokenBlocks(int sequences, int tokens, int firstToken, int grid) {
    public TokenBlocks {
        if (sequences < 1 || tokens < 1 || firstToken < 0 || grid < 1) {
            throw new IllegalArgumentException(
                    "token blocks need sizes of 1 or more, got %d sequences of %d tokens from %d on a grid of %d"
                            .formatted(sequences, tokens, firstToken, grid));
        }
    }

    /** Rows of the unit: {@code sequences * tokens}. */
    public int rows() {
        return sequences * tokens;
    }

    /** Blocks in a sequence of this unit. */
    public int blocksPerSequence() {
        return (firstToken + tokens - 1) / grid - firstToken / grid + 1;
    }

    /** Blocks of the unit. */
    public int count() {
        return blocksPerSequence() * sequences;
    }

    /** First row, inside the unit, of the i-th block in the order of summation. */
    public int firstRow(int i) {
        return i % sequences * tokens + firstTokenOfBlock(i) - firstToken;
    }

    /** Rows of the i-th block in the order of summation. */
    public int rowsOf(int i) {
        int end = Math.min(firstToken + tokens, (gridIndex(i) + 1) * grid);
        return end - firstTokenOfBlock(i);
    }

    private int gridIndex(int i) {
        return firstToken / grid + blocksPerSequence() - 1 - i / sequences;
    }

    private int firstTokenOfBlock(int i) {
        return Math.max(firstToken, gridIndex(i) * grid);
    }
}
