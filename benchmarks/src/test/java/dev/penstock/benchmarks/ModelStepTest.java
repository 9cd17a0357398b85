package dev.penstock.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.benchmarks.roofline.Card;
import dev.penstock.benchmarks.roofline.ModelStep;
import dev.penstock.benchmarks.roofline.Work;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The model of a step against the step that was measured. */
class ModelStepTest {
    @ParameterizedTest
    @ValueSource(
            strings = {"", "124m", "foo:4", "124m:", "124m:0", "124m:4:f64", "124m:4:f32:gemmex"})
    void rowsThatNameNoStepAreRefused(String row) {
        assertThatThrownBy(() -> GpuModelBenchmark.step(row))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageStartingWith("gpu-model: expected rows such as 124m:16")
                .hasMessageEndingWith("got " + row);
    }

    @Test
    void theModelGivesTheMeasuredStepOfAnH200AndNoStepBelowTheLimitsOfACard() {
        ModelStep measured = GpuModelBenchmark.step("124m:16:gemmex");

        assertThat(GpuModelBenchmark.millis(measured, Card.H200)).isBetween(46.0, 50.0);
        assertThat(measured.works())
                .allSatisfy(
                        each ->
                                assertThat(Card.H100.seconds(each, true))
                                        .isGreaterThan(Card.H100.leastSeconds(each, true)));
        // 6 operations for each weight of a product and token, and attention
        assertThat(measured.works().stream().mapToDouble(Work::operations).sum())
                .isBetween(6 * 123.5e6 * 16_384, 1.15 * 6 * 124.4e6 * 16_384);
    }
}
