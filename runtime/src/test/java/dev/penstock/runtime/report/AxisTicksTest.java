package dev.penstock.runtime.report;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class AxisTicksTest {
    @Test
    void areRoundNumbersInsideTheRange() {
        assertThat(AxisTicks.between(5.4, 5.56, 4).labels())
                .containsExactly("5.40", "5.45", "5.50", "5.55");
    }

    @Test
    void aRangeThatDoublesCannotDivideHasOneTick() {
        assertThat(AxisTicks.between(1e30, 1e30, 4).labels()).containsExactly("1.000e+30");
        assertThat(AxisTicks.between(0, 0, 4).values()).containsExactly(0.0);
    }

    @Test
    void hugeNumbersHaveShortLabels() {
        assertThat(AxisTicks.between(0, 4e30, 4).labels()).contains("2.00e+30");
    }
}
