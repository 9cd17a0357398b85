package dev.penstock.runtime.inference;

import java.util.ArrayList;
import java.util.List;

/**
 * How likely a model found a token that was chosen: natural logarithms of the softmax of its
 * logits, before temperature, top-k and top-p.
 *
 * @param token that was chosen
 * @param logProbability of it
 * @param likeliest tokens, from the likeliest down; equals in ascending order
 */
public record LogProbabilities(int token, double logProbability, List<Likely> likeliest) {
    public LogProbabilities {
        likeliest = List.copyOf(likeliest);
    }

    /** A token that might have been chosen. */
    public record Likely(int token, double logProbability) {}

    /**
     * Computes them in doubles.
     *
     * @param most how many of the likeliest tokens to name
     */
    static LogProbabilities of(float[] logits, int token, int most) {
        double largest = Double.NEGATIVE_INFINITY;
        for (float logit : logits) {
            largest = Math.max(largest, logit);
        }
        double sum = 0;
        for (float logit : logits) {
            sum += Math.exp(logit - largest);
        }
        double whole = largest + Math.log(sum);
        List<Likely> likeliest = new ArrayList<>();
        for (int each : likeliest(logits, Math.min(most, logits.length))) {
            likeliest.add(new Likely(each, logits[each] - whole));
        }
        return new LogProbabilities(token, logits[token] - whole, likeliest);
    }

    /** Keeps the best so far in order; few of many come in. */
    private static int[] likeliest(float[] logits, int count) {
        int[] best = new int[count];
        int known = 0;
        for (int token = 0; token < logits.length; token++) {
            if (known == count && (count == 0 || logits[token] <= logits[best[count - 1]])) {
                continue;
            }
            int at = known < count ? known++ : count - 1;
            for (; at > 0 && logits[token] > logits[best[at - 1]]; at--) {
                best[at] = best[at - 1];
            }
            best[at] = token;
        }
        return best;
    }
}
