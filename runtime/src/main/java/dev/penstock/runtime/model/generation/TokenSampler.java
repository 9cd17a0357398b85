package dev.penstock.runtime.model.generation;

import dev.penstock.runtime.model.parameters.CounterRandom;
import java.util.Arrays;

/**
 * Chooses the tokens of a text by a {@link Sampling}; the n-th choice depends on the seed, the
 * text's number, n and the logits. Confined to one thread at a time.
 */
public final class TokenSampler {
    private final Sampling sampling;
    private final CounterRandom random;
    private long choices;

    /**
     * @param text the number of the text: texts with the same seed continue differently
     */
    public TokenSampler(Sampling sampling, int text) {
        this.sampling = sampling;
        random = CounterRandom.of(sampling.seed(), "sampling of text " + text);
    }

    /** Chooses the next token. */
    public int choose(float[] logits) {
        long choice = choices++;
        if (sampling.temperature() == 0) {
            return mostLikely(logits);
        }
        int[] ranked = ranked(logits);
        int count = sampling.topK() == 0 ? ranked.length : Math.min(sampling.topK(), ranked.length);
        double[] weights = weights(logits, ranked, count);
        return ranked[draw(weights, random.uniform(choice))];
    }

    /** Returns the index of the largest logit, the first among equals. */
    private static int mostLikely(float[] logits) {
        int best = 0;
        for (int i = 1; i < logits.length; i++) {
            if (logits[i] > logits[best]) {
                best = i;
            }
        }
        return best;
    }

    /** Returns the tokens from the most likely down; equals in ascending order of tokens. */
    private static int[] ranked(float[] logits) {
        long[] keys = new long[logits.length];
        for (int i = 0; i < keys.length; i++) {
            int bits = Float.floatToIntBits(-logits[i]);
            int rising = bits < 0 ? bits ^ Integer.MAX_VALUE : bits;
            keys[i] = ((long) rising << 32) | i;
        }
        Arrays.sort(keys);
        int[] ranked = new int[keys.length];
        for (int i = 0; i < keys.length; i++) {
            ranked[i] = (int) keys[i];
        }
        return ranked;
    }

    /**
     * Returns the unnormalised probabilities of the first tokens, cut off where they reach top-p.
     */
    private double[] weights(float[] logits, int[] ranked, int count) {
        double[] weights = new double[count];
        double total = 0;
        for (int i = 0; i < count; i++) {
            double below = (double) logits[ranked[i]] - logits[ranked[0]];
            weights[i] = StrictMath.exp(below / sampling.temperature());
            total += weights[i];
        }
        double reached = 0;
        for (int i = 0; i < count; i++) {
            reached += weights[i];
            if (reached >= sampling.topP() * total) {
                return Arrays.copyOf(weights, i + 1);
            }
        }
        return weights;
    }

    private static int draw(double[] weights, double uniform) {
        double left = uniform * Arrays.stream(weights).sum();
        for (int i = 0; i < weights.length; i++) {
            left -= weights[i];
            if (left < 0) {
                return i;
            }
        }
        return weights.length - 1;
    }
}
