package dev.penstock.runtime.model.shape;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.runtime.model.shape.LearningRate.Schedule;
import java.util.function.LongToDoubleFunction;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class LearningRateTest {
    private final LearningRate rate = LearningRate.cosine(1.0, 0.1, 10, 110);

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
        assertThat(LearningRate.cosine(1.0, 0, 0, 1000).at(1)).isCloseTo(1.0, within(1e-5));
    }

    @Test
    void aConstantRateNeverChanges() {
        assertThat(LearningRate.constant(0.3).at(1)).isEqualTo(0.3);
        assertThat(LearningRate.constant(0.3).at(1_000_000)).isEqualTo(0.3);
    }

    /** The formula as it stood before there were other schedules. */
    @ParameterizedTest
    @CsvSource({"6e-4, 6e-5, 50, 1000", "3e-3, 0, 0, 37", "1, 1, 7, 20", "0.1, 0.01, 50, 20"})
    void theCosineHasTheBitsThatItAlwaysHad(double peak, double minimum, long warmUp, long total) {
        LearningRate cosine = LearningRate.cosine(peak, minimum, warmUp, total);
        LongToDoubleFunction before =
                step -> {
                    if (step < warmUp) {
                        return peak * step / warmUp;
                    }
                    if (step >= total) {
                        return minimum;
                    }
                    double progress = (double) (step - warmUp) / (total - warmUp);
                    return minimum
                            + 0.5 * (peak - minimum) * (1 + StrictMath.cos(Math.PI * progress));
                };

        assertThat(rates(cosine, total + 10))
                .containsExactly(
                        LongStream.rangeClosed(1, total + 10).mapToDouble(before).toArray());
    }

    @Test
    void theLineIsThatOfLambdaLr() {
        // transformers' get_linear_schedule_with_warmup, which LambdaLR multiplies the peak by
        LongToDoubleFunction lambda =
                step ->
                        step < 10
                                ? step / Math.max(1.0, 10)
                                : Math.max(0, (110 - step) / Math.max(1.0, 110 - 10));
        LearningRate line = new LearningRate(Schedule.LINEAR, 0.02, 0, 10, 0, 110);

        for (long step = 1; step <= 130; step++) {
            assertThat(line.at(step)).isCloseTo(0.02 * lambda.applyAsDouble(step), within(1e-17));
        }
    }

    @Test
    void theLineEndsAtTheMinimum() {
        LearningRate line = new LearningRate(Schedule.LINEAR, 1.0, 0.2, 0, 0, 8);

        assertThat(rates(line, 10))
                .containsExactly(
                        new double[] {0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.2, 0.2},
                        within(1e-15));
    }

    @Test
    void aConstantScheduleStaysAtThePeakAfterItsWarmUp() {
        LearningRate constant = new LearningRate(Schedule.CONSTANT, 0.8, 0.1, 4, 0, 6);

        assertThat(rates(constant, 8))
                .containsExactly(
                        new double[] {0.2, 0.4, 0.6, 0.8, 0.8, 0.8, 0.8, 0.8}, within(1e-15));
    }

    @Test
    void wsdWarmsUpIsStableAndDecaysInItsLastSteps() {
        LearningRate wsd = new LearningRate(Schedule.WSD, 1.0, 0.2, 2, 4, 10);

        assertThat(rates(wsd, 12))
                .containsExactly(
                        new double[] {0.5, 1, 1, 1, 1, 1, 0.8, 0.6, 0.4, 0.2, 0.2, 0.2},
                        within(1e-15));
    }

    @Test
    void theStableStepsOfWsdDoNotDependOnWhereTheRunEnds() {
        LearningRate shorter = new LearningRate(Schedule.WSD, 6e-4, 6e-5, 50, 100, 1000);
        LearningRate longer = new LearningRate(Schedule.WSD, 6e-4, 6e-5, 50, 300, 3000);

        assertThat(rates(shorter, 900)).containsExactly(rates(longer, 900));
    }

    @Test
    void theWarmUpComesFirstWhereItLeavesTheDecayNoRoom() {
        LearningRate wsd = new LearningRate(Schedule.WSD, 1.0, 0, 6, 4, 8);

        assertThat(rates(wsd, 8))
                .containsExactly(
                        new double[] {1 / 6.0, 2 / 6.0, 3 / 6.0, 4 / 6.0, 5 / 6.0, 1, 0.5, 0},
                        within(1e-15));
    }

    @ParameterizedTest
    @EnumSource
    void aRunThatEndsInItsWarmUpNeverGetsToThePeak(Schedule schedule) {
        LearningRate rate = new LearningRate(schedule, 1.0, 0.1, 50, 2, 20);

        assertThat(rate.at(20)).isEqualTo(0.4);
    }

    @Test
    void ratesThatMakeNoSenseAreRefused() {
        assertThatThrownBy(() -> LearningRate.cosine(0.1, 0.2, 0, 10))
                .hasMessageContaining("minimum 0.2 and peak 0.1");
        assertThatThrownBy(() -> LearningRate.cosine(Double.NaN, 0, 0, 10))
                .hasMessageContaining("peak NaN");
        assertThatThrownBy(() -> LearningRate.cosine(1, 0, -1, 10))
                .hasMessageContaining("a warm-up of -1");
        assertThatThrownBy(() -> new LearningRate(Schedule.WSD, 1, 0, 0, -2, 10))
                .hasMessageContaining("a decay of -2");
    }

    private static double[] rates(LearningRate rate, long steps) {
        return LongStream.rangeClosed(1, steps).mapToDouble(rate::at).toArray();
    }
}
