package dev.penstock.runtime.model.shape;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import org.junit.jupiter.api.Test;

class LearningRateTest {
    private final LearningRate rate = new LearningRate(1.0, 0.1, 10, 110);

    @Test
    void warmsUpInALineToThePeak() {
        assertThat(rate.at(1)).isEqualTo(0.1);
        assertThat(rate.at(5)).isEqualTo(0.5);
        assertThat(rate.at(10)).isEqualTo(1.0);
    }

    @Test
    void fallsAlongHalfACosineToTheMinimumAndStays() {
        assertThat(rate.at(60)).isCloseTo(0.55, within(1e-12));
        assertThat(rate.at(35)).isCloseTo(0.1 + 0.45 * (1 + Math.sqrt(0.5)), within(1e-12));
        assertThat(rate.at(110)).isEqualTo(0.1);
        assertThat(rate.at(1_000_000)).isEqualTo(0.1);
    }

    @Test
    void withoutWarmUpTheFirstStepIsNearThePeak() {
        assertThat(new LearningRate(1.0, 0, 0, 1000).at(1)).isCloseTo(1.0, within(1e-5));
    }

    @Test
    void aConstantRateNeverChanges() {
        assertThat(LearningRate.constant(0.3).at(1)).isEqualTo(0.3);
        assertThat(LearningRate.constant(0.3).at(1_000_000)).isEqualTo(0.3);
    }

    @Test
    void ratesThatMakeNoSenseAreRefused() {
        assertThatThrownBy(() -> new LearningRate(0.1, 0.2, 0, 10))
                .hasMessageContaining("minimum 0.2 and peak 0.1");
        assertThatThrownBy(() -> new LearningRate(Double.NaN, 0, 0, 10))
                .hasMessageContaining("peak NaN");
        assertThatThrownBy(() -> new LearningRate(1, 0, -1, 10))
                .hasMessageContaining("a warm-up of -1");
    }
}
