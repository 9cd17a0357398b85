package dev.penstock.runtime.model.shape;

/**
 * The size of a GPT-2.
 *
 * @param vocabulary number of tokens that exist, V
 * @param context tokens of a whole sequence, T
 * @param width columns of the residual stream, d; a multiple of {@code heads}
 * @param layers transformer blocks, L
 * @param heads attention heads, h
 * @param tied whether the head's matrix is the token embedding
 */
public record GptShape(
        int vocabulary, int context, int width, int layers, int heads, boolean tied) {
    public GptShape {
        if (vocabulary < 1 || context < 1 || width < 1 || layers < 1 || heads < 1) {
            throw new IllegalArgumentException(
                    "a GPT needs sizes of 1 or more, got vocabulary %d, context %d, width %d, layers %d, heads %d"
                            .formatted(vocabulary, context, width, layers, heads));
        }
        if (width % heads != 0) {
            throw new IllegalArgumentException(
                    "the width must be a multiple of the heads, got width %d and %d heads; try %d heads"
                            .formatted(width, heads, largestDivisor(width, heads)));
        }
    }

    /** Returns the largest divisor of {@code number} that is at most {@code most}. */
    static int largestDivisor(int number, int most) {
        int divisor = Math.min(number, most);
        while (number % divisor != 0) {
            divisor--;
        }
        return divisor;
    }

    /** Returns the columns of the hidden layer of the MLP. */
    public int hidden() {
        return 4 * width;
    }

    /** Returns the parameter count of one transformer block. */
    public long layerParameters() {
        return 12L * width * width + 13L * width;
    }

    /** Returns the parameter count of the two embedding tables. */
    public long embeddingParameters() {
        return ((long) vocabulary + context) * width;
    }

    /** Returns the parameter count of the final norm and, when untied, the head's own matrix. */
    public long headParameters() {
        return 2L * width + (tied ? 0 : (long) vocabulary * width);
    }

    /** Returns the parameter count of the whole model; a tied matrix counts once. */
    public long parameters() {
        return embeddingParameters() + layers * layerParameters() + headParameters();
    }

    /**
     * Returns the FLOPs of one token in one block, forward and backward: matrix products and the
     * causal half of attention, nothing recomputed.
     */
    public long layerFlopsPerToken() {
        return 72L * width * width + 6L * width * (context + 1L);
    }

    /**
     * Returns the FLOPs of one token in the embedding, forward and backward: two additions in each.
     */
    public long embeddingFlopsPerToken() {
        return 4L * width;
    }

    /** Returns the FLOPs of one token in the head, forward and backward. */
    public long headFlopsPerToken() {
        return 6L * vocabulary * width;
    }

    /** Returns the FLOPs of one token in the whole model, forward and backward. */
    public long flopsPerToken() {
        return embeddingFlopsPerToken() + layers * layerFlopsPerToken() + headFlopsPerToken();
    }
}
