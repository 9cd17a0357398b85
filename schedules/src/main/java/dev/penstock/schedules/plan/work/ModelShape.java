package dev.penstock.schedules.plan.work;

import dev.penstock.schedules.generate.base.SliceBalance;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * The size of a transformer that predicts the next token.
 *
 * @param layers transformer blocks, l
 * @param width columns of the residual stream, h
 * @param heads attention heads, of queries; a tensor-parallel shard takes whole heads
 * @param vocabulary rows of the token embedding, V
 * @param sequence tokens of a sequence, s
 * @param tied whether the head uses the token embedding
 * @param block what each block consists of
 * @param places rows of a table of learned positions; 0 without one
 * @param lastNorm parameters of the last norm
 * @param tuning what is trained; empty: everything
 */
public record ModelShape(
        int layers,
        int width,
        int heads,
        int vocabulary,
        int sequence,
        boolean tied,
        BlockShape block,
        int places,
        long lastNorm,
        Optional<TrainedShape> tuning) {
    public ModelShape {
        if (layers < 1 || width < 1 || heads < 1 || vocabulary < 1 || sequence < 1) {
            throw new IllegalArgumentException(
                    "a model needs sizes of 1 or more, got layers %d, width %d, heads %d, vocabulary %d, sequence %d"
                            .formatted(layers, width, heads, vocabulary, sequence));
        }
        if (heads % block.keyHeads() != 0) {
            throw new IllegalArgumentException(
                    "queries share keys in groups of one size: expected a divisor of %d heads, got %d of keys"
                            .formatted(heads, block.keyHeads()));
        }
        if (!block.windows().isEmpty() && block.windows().size() != layers) {
            throw new IllegalArgumentException(
                    "expected a window for each of %d layers, got %s"
                            .formatted(layers, block.windows()));
        }
    }

    /** A model of which everything is trained. */
    public ModelShape(
            int layers,
            int width,
            int heads,
            int vocabulary,
            int sequence,
            boolean tied,
            BlockShape block,
            int places,
            long lastNorm) {
        this(
                layers,
                width,
                heads,
                vocabulary,
                sequence,
                tied,
                block,
                places,
                lastNorm,
                Optional.empty());
    }

    /** The same model of which this is trained. */
    public ModelShape training(TrainedShape trained) {
        return new ModelShape(
                layers,
                width,
                heads,
                vocabulary,
                sequence,
                tied,
                block,
                places,
                lastNorm,
                Optional.of(trained));
    }

    /** The size of a GPT-2, with a place for each token of a sequence. */
    public ModelShape(
            int layers, int width, int heads, int vocabulary, int sequence, boolean tied) {
        this(
                layers,
                width,
                heads,
                vocabulary,
                sequence,
                tied,
                BlockShape.gpt2(width, dividing(width, heads)),
                sequence,
                2L * width);
    }

    private static int dividing(int width, int heads) {
        if (heads > 0 && width % heads != 0) {
            throw new IllegalArgumentException(
                    "the width must be a multiple of the heads, got width %d and %d heads"
                            .formatted(width, heads));
        }
        return Math.max(1, heads);
    }

    /**
     * The same model on sequences of another length. A table of positions that is as long as a
     * sequence stays so, and a longer one grows if it is too short.
     */
    public ModelShape withSequence(int tokens) {
        int table = places == 0 ? 0 : places == sequence ? tokens : Math.max(places, tokens);
        return new ModelShape(
                layers, width, heads, vocabulary, tokens, tied, block, table, lastNorm, tuning);
    }

    /** Columns of all queries. */
    public long queryColumns() {
        return (long) heads * block.headSize();
    }

    /** Columns of all keys; values have as many. */
    public long keyColumns() {
        return (long) block.keyHeads() * block.headSize();
    }

    /** Columns of all layers before the activation of an MLP. */
    long hiddenColumns() {
        return (long) block.hiddenParts() * block.hidden();
    }

    /** Parameters of the matrices of one block: 12 h^2 of a GPT-2. */
    public long blockMatrixParameters() {
        return width * (2 * queryColumns() + 2 * keyColumns() + hiddenColumns() + block.hidden());
    }

    /**
     * How many tokens one token of a slice attends to: the mean over these tokens and over the
     * layers, whose windows may differ.
     *
     * @param before tokens of the sequence before the slice
     */
    public double meanContext(int before, int length) {
        if (block.bothWays()) {
            return before + length;
        }
        double all = before + (length + 1) / 2.0;
        if (block.windows().isEmpty()) {
            return all;
        }
        double sum = 0;
        for (int window : block.windows()) {
            sum += window == 0 ? all : meanInWindow(before, length, window);
        }
        return sum / layers;
    }

    private static double meanInWindow(long before, long length, long window) {
        // the first tokens see fewer than the window holds
        long fewer = Math.clamp(window - before, 0, length);
        double seen = fewer * (before + (fewer + 1) / 2.0) + (double) (length - fewer) * window;
        return seen / length;
    }

    /** Slices of equal work. */
    public SliceBalance sliceBalance() {
        return new SliceBalance(2 * blockMatrixParameters(), 4 * queryColumns(), block.windows());
    }

    /** Slice lengths that are proportions, such as 1 and 1, as tokens of the whole sequence. */
    public List<Integer> tokens(List<Integer> proportions) {
        long sum = proportions.stream().mapToLong(Integer::longValue).sum();
        var tokens = new ArrayList<Integer>();
        long before = 0;
        for (int length : proportions) {
            long after = before + length;
            tokens.add((int) (after * sequence / sum - before * sequence / sum));
            before = after;
        }
        return tokens;
    }

    /** The blocks divided evenly among so many stages, the first ones with one more. */
    public List<Integer> evenPartition(int stages) {
        return IntStream.range(0, stages)
                .mapToObj(stage -> layers / stages + (stage < layers % stages ? 1 : 0))
                .toList();
    }

    /** Parameters of one block: 12 h^2 + 13 h of a GPT-2, and its adapters. */
    public long blockParameters() {
        return blockMatrixParameters() + block.vectors() + adapters();
    }

    /** Parameters of the adapters in one block. */
    long adapters() {
        return tuning.map(TrainedShape::adapters).orElse(0L);
    }

    /** Those of {@link #blockParameters} that are trained. */
    long trainedOfBlock() {
        return tuning.map(TrainedShape::block).orElseGet(this::blockParameters);
    }

    /** Parameters of one block whose gradients are matrix products. */
    long productsOfBlock() {
        return tuning.map(TrainedShape::products).orElseGet(this::blockMatrixParameters);
    }

    /** Those of {@link #embeddingParameters} that are trained. */
    long trainedOfEmbedding() {
        return tuning.map(TrainedShape::embedding).orElseGet(this::embeddingParameters);
    }

    /** Those of the last norm that are trained. */
    long trainedOfLastNorm() {
        return tuning.map(TrainedShape::lastNorm).orElse(lastNorm);
    }

    /** Whether the head's matrix is trained, which of a tied one is that of the embedding. */
    boolean trainsHead() {
        return tuning.map(TrainedShape::head).orElse(true);
    }

    /** Parameters of the token and position embeddings. */
    public long embeddingParameters() {
        return ((long) vocabulary + places) * width;
    }

    /** Parameters of the head's matrix; a tied one is that of the embedding. */
    public long headMatrixParameters() {
        return (long) vocabulary * width;
    }

    /** Parameters of the model; a tied matrix counts once. */
    public long parameters() {
        return layers * blockParameters()
                + embeddingParameters()
                + lastNorm
                + (tied ? 0 : headMatrixParameters());
    }
}
