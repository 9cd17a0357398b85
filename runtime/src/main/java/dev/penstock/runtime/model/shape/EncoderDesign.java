package dev.penstock.runtime.model.shape;

import java.util.List;

/**
 * What a bidirectional model has besides, as BERT (Devlin et al., arXiv 1810.04805): tokens of
 * several types, and a head that predicts words that were hidden, or one that says to which class a
 * text belongs. Its queries see all keys of their sequence.
 *
 * <p>The original norms each sum. Written so that every norm stands before a branch, as in all
 * other models, its blocks differ only in what a branch is added to, and stages pass on sums that
 * are not normalised yet:
 *
 * <pre>
 *   original             x = LN(x + f(x))
 *   here, post           s = LN(s) + f(LN(s))      with x = LN(s)
 *   pre (Megatron's)     x = x + f(LN(x))
 * </pre>
 *
 * A head that classifies reads the first token of a text alone: {@code tanh(x pooler + bias)
 * classifier + bias}.
 *
 * @param tokenTypes rows of the table of types; without a second text the first one is added to
 *     every token
 * @param normsSums whether a branch is added to what its norm returns: post, otherwise pre
 * @param labels names of the classes, at least two; empty where hidden words are predicted
 */
public record EncoderDesign(int tokenTypes, boolean normsSums, List<String> labels) {
    public EncoderDesign {
        labels = List.copyOf(labels);
        if (labels.size() == 1 || labels.stream().distinct().count() < labels.size()) {
            throw new IllegalArgumentException(
                    "model.labels: expected none, or two or more that differ, got " + labels);
        }
        if (tokenTypes < 1) {
            throw new IllegalArgumentException("tokens are of 1 type or more, got " + tokenTypes);
        }
    }

    /** The design of a model that predicts hidden words. */
    public EncoderDesign(int tokenTypes, boolean normsSums) {
        this(tokenTypes, normsSums, List.of());
    }

    /** Returns the same with a head that classifies, or, without labels, with one for words. */
    public EncoderDesign classifying(List<String> asked) {
        return new EncoderDesign(tokenTypes, normsSums, asked);
    }

    /** Returns whether the head says to which class a text belongs. */
    public boolean classifies() {
        return !labels.isEmpty();
    }

    /**
     * Returns the parameter count of the head's linear layer, of the norm behind it, if there is
     * one, and of the bias of the logits.
     */
    long headParameters(NormDesign norm, long width, long vocabulary) {
        long behind = classifies() ? labels.size() : norm.parameters(width) + vocabulary;
        return width * width + width + behind;
    }
}
