package dev.penstock.runtime.model.shape;

/**
 * The size and the design of a transformer that predicts the next token. Its {@link
 * dev.penstock.runtime.model.family families} differ in nothing but these.
 *
 * @param vocabulary number of tokens that exist, V
 * @param context tokens of a whole sequence, T
 * @param width columns of the residual stream, d
 * @param layers transformer blocks, L
 * @param block what blocks consist of
 * @param positions how a token's place in its sequence enters
 * @param tied whether the head's matrix is the token embedding
 */
public record ModelShape(
        int vocabulary,
        int context,
        int width,
        int layers,
        BlockDesign block,
        Positions positions,
        boolean tied) {
    public ModelShape {
        if (vocabulary < 1 || context < 1 || width < 1 || layers < 1) {
            throw new IllegalArgumentException(
                    "a model needs sizes of 1 or more, got vocabulary %d, context %d, width %d, layers %d"
                            .formatted(vocabulary, context, width, layers));
        }
        EncoderDesign encoder = block.encoder();
        if (tied && encoder != null && encoder.classifies()) {
            throw new IllegalArgumentException("a head that classifies has a matrix of its own");
        }
        if (context > positions.most()) {
            throw new IllegalArgumentException(
                    "the model has places for %d tokens, but sequences have %d"
                            .formatted(positions.most(), context));
        }
        if (positions instanceof Positions.Rotary && block.heads().size() % 2 != 0) {
            throw new IllegalArgumentException(
                    "model.head-size, model.heads: expected an even size, as heads that turn have pairs of columns, got "
                            + block.heads().size());
        }
        if (!block.windows().isEmpty() && block.windows().size() != layers) {
            throw new IllegalArgumentException(
                    "expected a window, or a retention, for each of %d layers, got %s"
                            .formatted(layers, block.windows()));
        }
    }

    /**
     * Returns a GPT-2.
     *
     * @param width a multiple of {@code heads}
     */
    public static ModelShape gpt2(
            int vocabulary, int context, int width, int layers, int heads, boolean tied) {
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
        return new ModelShape(
                vocabulary,
                context,
                width,
                layers,
                BlockDesign.gpt2(width, heads),
                new Positions.Learned(context),
                tied);
    }

    /** Returns the same model with sequences of another length. */
    public ModelShape withContext(int tokens) {
        return new ModelShape(vocabulary, tokens, width, layers, block, positions, tied);
    }

    /** Returns the model whose layers are all as one of this model's. */
    public ModelShape like(int layer) {
        return block.windows().isEmpty()
                ? this
                : new ModelShape(
                        vocabulary,
                        context,
                        width,
                        layers,
                        block.like(layer, layers),
                        positions,
                        tied);
    }

    /** Returns the largest divisor of {@code number} that is at most {@code most}. */
    static int largestDivisor(int number, int most) {
        int divisor = Math.min(number, most);
        while (number % divisor != 0) {
            divisor--;
        }
        return divisor;
    }

    /** Returns whether the head says to which class a text belongs. */
    public boolean classifies() {
        EncoderDesign encoder = block.encoder();
        return encoder != null && encoder.classifies();
    }

    /** Returns the number of logits: of classes, or else of the vocabulary. */
    public int outputs() {
        EncoderDesign encoder = block.encoder();
        return encoder != null && encoder.classifies() ? encoder.labels().size() : vocabulary;
    }

    /** Returns the name of the matrix of the logits. */
    public String headMatrix() {
        return classifies() ? "classifier.weight" : tied ? "wte.weight" : "lm_head.weight";
    }

    /** Returns the number of heads of queries. */
    public int heads() {
        return block.heads().queries();
    }

    /** Returns the parameter count of one transformer block. */
    public long layerParameters(int layer) {
        return block.matrixParameters(layer, width) + block.vectorParameters(layer, width);
    }

    /** Returns the parameter count of several blocks, one after another. */
    public long layerParameters(int firstLayer, int count) {
        long sum = 0;
        for (int layer = firstLayer; layer < firstLayer + count; layer++) {
            sum += layerParameters(layer);
        }
        return sum;
    }

    /** Returns the parameter count of the matrices of one transformer block. */
    public long layerMatrixParameters(int layer) {
        return block.matrixParameters(layer, width);
    }

    /** Returns the parameter count of the embedding's tables. */
    public long embeddingParameters() {
        return ((long) vocabulary + addedRows()) * width;
    }

    /** Returns the rows of the tables that are added to tokens: of positions, and of types. */
    public int addedRows() {
        EncoderDesign encoder = block.encoder();
        return positions.tableRows() + (encoder == null ? 0 : encoder.tokenTypes());
    }

    /**
     * Returns the parameter count of the final norm, of the head's own layer, if it has one, and,
     * when untied, of the head's own matrix.
     */
    public long headParameters() {
        return headVectorParameters() + (tied ? 0 : (long) outputs() * width);
    }

    /** Same as {@link #headParameters} without the matrix of the logits. */
    public long headVectorParameters() {
        EncoderDesign encoder = block.encoder();
        return block.norm().parameters(width)
                + (encoder == null ? 0 : encoder.headParameters(block.norm(), width, vocabulary));
    }

    /** Returns the parameter count of the whole model; a tied matrix counts once. */
    public long parameters() {
        return embeddingParameters() + layerParameters(0, layers) + headParameters();
    }

    /**
     * Returns the FLOPs of one token in one block, forward and backward: matrix products and what
     * attention sees of sequences as long as the context, on average; nothing recomputed.
     */
    public long layerFlopsPerToken(int layer) {
        return layerFlops(layer, context) / context;
    }

    /**
     * Returns the FLOPs of a sequence of this many tokens in one block, forward and backward,
     * nothing recomputed.
     */
    public long layerFlops(int layer, int tokens) {
        return 6 * layerMatrixParameters(layer) * tokens + attentionFlopsOfSequence(layer, tokens);
    }

    /**
     * The two products of attention over a whole sequence, forward and twice as much backward; of a
     * retention those of a token with the state, which are as many for every token.
     */
    private long attentionFlopsOfSequence(int layer, int tokens) {
        if (block.retains(layer)) {
            return 12L * block.heads().stateColumns() * tokens;
        }
        if (block.encoder() != null) {
            return 12L * block.heads().queryColumns() * tokens * tokens;
        }
        long window = Math.min(block.windowOr(layer, context), tokens);
        long pairs = window * (window + 1) / 2 + (tokens - window) * window;
        return 12L * block.heads().queryColumns() * pairs;
    }

    /**
     * Returns the FLOPs of one token in the embedding, forward and backward: two additions in each.
     */
    public long embeddingFlopsPerToken() {
        return 4L * width;
    }

    /** Returns the FLOPs of one token in the head, forward and backward. */
    public long headFlopsPerToken() {
        long ofLayer = block.encoder() == null ? 0 : 6L * width * width;
        return 6L * outputs() * width + ofLayer;
    }

    /** Returns the FLOPs of one token in the whole model, forward and backward. */
    public long flopsPerToken() {
        long blocks = 0;
        for (int layer = 0; layer < layers; layer++) {
            blocks += layerFlopsPerToken(layer);
        }
        return embeddingFlopsPerToken() + blocks + headFlopsPerToken();
    }
}
