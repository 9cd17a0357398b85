package dev.penstock.schedules.plan.work;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/**
 * The size of a GPT.
 *
 * @param layers transformer blocks, l
 * @param width columns of the residual stream, h
 * @param heads attention heads; a tensor-parallel shard takes whole heads
 * @param vocabulary rows of the token embedding, V
 * @param sequence tokens of a sequence, s
 * @param tied whether the head uses the token embedding
 */
public record ModelShape(
        int layers, int width, int heads, int vocabulary, int sequence, boolean tied) {
    public ModelShape {
        if (layers < 1 || width < 1 || heads < 1 || vocabulary < 1 || sequence < 1) {
            throw new IllegalArgumentException(
                    "a model needs sizes of 1 or more, got layers %d, width %d, heads %d, vocabulary %d, sequence %d"
                            .formatted(layers, width, heads, vocabulary, sequence));
        }
        if (width % heads != 0) {
            throw new IllegalArgumentException(
                    "the width must be a multiple of the heads, got width %d and %d heads"
                            .formatted(width, heads));
        }
    }

    /** The same model on sequences of another length. */
    public ModelShape withSequence(int tokens) {
        return new ModelShape(layers, width, heads, vocabulary, tokens, tied);
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

    /** Parameters of one block: 12 h^2 + 13 h. */
    public long blockParameters() {
        return 12L * width * width + 13L * width;
    }

    /** Parameters of the token and position embeddings. */
    public long embeddingParameters() {
        return ((long) vocabulary + sequence) * width;
    }

    /** Parameters of the head's matrix; a tied one is that of the embedding. */
    public long headMatrixParameters() {
        return (long) vocabulary * width;
    }

    /** Parameters of the last norm. */
    public long lastNormParameters() {
        return 2L * width;
    }

    /** Parameters of the model; a tied matrix counts once. */
    public long parameters() {
        return layers * blockParameters()
                + embeddingParameters()
                + lastNormParameters()
                + (tied ? 0 : headMatrixParameters());
    }
}
