package dev.penstock.runtime.model.shape;

/**
 * What a bidirectional model has besides, as BERT (Devlin et al., arXiv 1810.04805): tokens of
 * several types, and a head that predicts words that were hidden. Its queries see all keys of their
 * sequence.
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
 * @param tokenTypes rows of the table of types, whose first one is added to every token
 * @param normsSums whether a branch is added to what its norm returns: post, otherwise pre
 */
public record EncoderDesign(int tokenTypes, boolean normsSums) {
    public EncoderDesign {
        if (tokenTypes < 1) {
            throw new IllegalArgumentException("tokens are of 1 type or more, got " + tokenTypes);
        }
    }

    /**
     * Returns the parameter count of the head's linear layer, of the norm behind it and of the bias
     * of the logits.
     */
    long headParameters(NormDesign norm, long width, long vocabulary) {
        return width * width + width + norm.parameters(width) + vocabulary;
    }
}
