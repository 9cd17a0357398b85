package dev.penstock.runtime.data.rows;

import dev.penstock.actors.spi.StepKind;

/**
 * Which words are hidden from a model that is to predict them (Devlin et al., arXiv 1810.04805,
 * section 3.1): of those that are chosen, 8 in 10 become the mask, 1 in 10 another word, and 1 in
 * 10 stay.
 *
 * <p>Random numbers are keyed by the seed, the step, the sequence's number in the step and the
 * token: a choice does not depend on which rank reads it, or on micro-batches. Held-out text is
 * hidden in the same places in every evaluation.
 *
 * @param share of the tokens that are chosen, above 0 and up to 1
 * @param token the mask
 * @param words tokens from 0 to below this take the place of others
 */
public record Masking(double share, int token, int words) {
    private static final double HIDDEN = 0.8;
    private static final double REPLACED = 0.9;
    private static final long GOLDEN = 0x9e3779b97f4a7c15L;
    private static final double UNIT = 0x1p-53;

    public Masking {
        if (!(share > 0) || share > 1 || token < 0 || words < 1) {
            throw new IllegalArgumentException(
                    "expected a share above 0 and up to 1, a token and words, got %s, %d and %d"
                            .formatted(share, token, words));
        }
    }

    /**
     * The choices of one sequence.
     *
     * @param sequence number in the step
     */
    public Row row(long seed, StepKind kind, long step, long sequence) {
        long key = Permutation.mix(seed) ^ Permutation.mix(2 * step + kind.ordinal());
        return new Row(this, Permutation.mix(key ^ Permutation.mix(~sequence)));
    }

    /** The choices of a sequence. */
    public record Row(Masking masking, long key) {
        /** Returns whether the word at a place is to be predicted. */
        public boolean isChosen(int place) {
            return uniform(place) < masking.share;
        }

        /** Returns what the model reads at a place in which a word stands. */
        public int input(int place, int word) {
            double within = uniform(place) / masking.share;
            if (within < HIDDEN) {
                return masking.token;
            }
            return within < REPLACED
                    ? (int) Long.remainderUnsigned(bits(place, 1), masking.words)
                    : word;
        }

        private double uniform(int place) {
            return (bits(place, 0) >>> 11) * UNIT;
        }

        private long bits(int place, int site) {
            return Permutation.mix(key + (2L * place + site + 1) * GOLDEN);
        }
    }
}
