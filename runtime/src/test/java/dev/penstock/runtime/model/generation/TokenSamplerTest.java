package dev.penstock.runtime.model.generation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import org.junit.jupiter.api.Test;

class TokenSamplerTest {
    private static final int CHOICES = 20_000;

    /** Logs of 0.5, 0.1, 0.3, 0.1. */
    private static final float[] LOGITS = {
        (float) Math.log(0.5), (float) Math.log(0.1), (float) Math.log(0.3), (float) Math.log(0.1)
    };

    @Test
    void withoutLimitsTokensComeAsOftenAsTheirProbability() {
        double[] shares = shares(new Sampling(1, 0, 1, 5));

        assertShares(shares, 0.5, 0.1, 0.3, 0.1);
    }

    @Test
    void temperatureSharpens() {
        double[] shares = shares(new Sampling(0.5, 0, 1, 5));

        assertShares(shares, 0.25 / 0.36, 0.01 / 0.36, 0.09 / 0.36, 0.01 / 0.36);
    }

    @Test
    void topKKeepsTheMostLikely() {
        assertShares(shares(new Sampling(1, 2, 1, 5)), 0.5 / 0.8, 0, 0.3 / 0.8, 0);
        assertShares(shares(new Sampling(1, 1, 1, 5)), 1, 0, 0, 0);
        assertShares(shares(new Sampling(1, 99, 1, 5)), 0.5, 0.1, 0.3, 0.1);
    }

    @Test
    void topPKeepsTheFewestThatReachIt() {
        assertShares(shares(new Sampling(1, 0, 0.7, 5)), 0.5 / 0.8, 0, 0.3 / 0.8, 0);
        assertShares(shares(new Sampling(1, 0, 0.85, 5)), 0.5 / 0.9, 0.1 / 0.9, 0.3 / 0.9, 0);
        assertShares(shares(new Sampling(1, 0, 0.01, 5)), 1, 0, 0, 0);
    }

    @Test
    void greedyTakesTheFirstOfTheLargest() {
        TokenSampler greedy = new TokenSampler(Sampling.greedy(), 0);

        assertThat(greedy.choose(new float[] {-3, 2, 2, -5})).isEqualTo(1);
    }

    @Test
    void settingsThatMakeNoSenseAreRefused() {
        assertThatThrownBy(() -> new Sampling(-1, 0, 1, 0))
                .hasMessageContaining("got -1.0, 0, 1.0");
        assertThatThrownBy(() -> new Sampling(1, 0, 0, 0)).hasMessageContaining("top-p in (0, 1]");
        assertThatThrownBy(() -> new Sampling(1, -2, 1, 0)).hasMessageContaining("top-k");
    }

    private static double[] shares(Sampling sampling) {
        TokenSampler sampler = new TokenSampler(sampling, 0);
        double[] shares = new double[LOGITS.length];
        for (int i = 0; i < CHOICES; i++) {
            shares[sampler.choose(LOGITS)] += 1.0 / CHOICES;
        }
        return shares;
    }

    private static void assertShares(double[] shares, double... expected) {
        for (int i = 0; i < expected.length; i++) {
            double tolerance = expected[i] == 0 ? 0 : 0.02;
            assertThat(shares[i]).as("token %d", i).isCloseTo(expected[i], within(tolerance));
        }
    }
}
