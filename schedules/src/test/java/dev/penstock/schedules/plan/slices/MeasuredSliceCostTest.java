package dev.penstock.schedules.plan.slices;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class MeasuredSliceCostTest {
    private static List<SliceSample> samples(double noise) {
        Random random = new Random(5);
        var samples = new ArrayList<SliceSample>();
        for (int length = 8; length <= 256; length += 8) {
            for (int context = 0; context <= 1024; context += 64) {
                double nanos = 1e6 + 9e3 * length + 10 * length * length;
                if (context > 0) {
                    nanos += 2e4 + 30.0 * length + 40.0 * context + 3.0 * length * context;
                }
                double factor = 1 + noise * (2 * random.nextDouble() - 1);
                samples.add(new SliceSample(length, context, Math.round(nanos * factor)));
            }
        }
        return samples;
    }

    @Test
    void findsTheLawThatMadeTheSamples() {
        MeasuredSliceCost cost = MeasuredSliceCost.of(samples(0));

        ContextTerm term = cost.contextTerm();

        assertThat(term.a0()).isCloseTo(2e4, within(1.0));
        assertThat(term.a1()).isCloseTo(30, within(0.01));
        assertThat(term.a2()).isCloseTo(40, within(0.01));
        assertThat(term.a3()).isCloseTo(3, within(0.001));
        assertThat(term.error().worst()).isLessThan(1e-5);
        assertThat(cost.nanos(64, 0)).isEqualTo(1_000_000 + 9_000 * 64 + 10 * 64 * 64);
        assertThat(cost.nanos(64, 100))
                .isCloseTo(
                        1_000_000 + 9_000 * 64 + 10 * 64 * 64 + 20_000 + 1_920 + 4_000 + 19_200,
                        within(3L));
    }

    @Test
    void reportsHowFarThePredictionIsOff() {
        ContextTerm.FitError error = MeasuredSliceCost.of(samples(0.01)).contextTerm().error();

        assertThat(error.samples()).isEqualTo(32 * 16);
        assertThat(error.mean()).isBetween(0.001, 0.02);
        assertThat(error.worst()).isBetween(error.mean(), 0.03);
    }

    @Test
    void noFitIsBetterInTheLeastSquaresSense() {
        List<SliceSample> samples = samples(0.05);
        MeasuredSliceCost cost = MeasuredSliceCost.of(samples);
        ContextTerm best = cost.contextTerm();

        for (double step : new double[] {-1e-3, 1e-3}) {
            for (ContextTerm moved :
                    List.of(
                            moved(best, 1 + step, 1, 1, 1),
                            moved(best, 1, 1 + step, 1, 1),
                            moved(best, 1, 1, 1 + step, 1),
                            moved(best, 1, 1, 1, 1 + step))) {
                assertThat(squares(moved, cost, samples))
                        .isGreaterThan(squares(best, cost, samples));
            }
        }
    }

    private static ContextTerm moved(ContextTerm t, double f0, double f1, double f2, double f3) {
        return new ContextTerm(t.a0() * f0, t.a1() * f1, t.a2() * f2, t.a3() * f3, t.error());
    }

    private static double squares(
            ContextTerm term, MeasuredSliceCost cost, List<SliceSample> samples) {
        double sum = 0;
        for (SliceSample s : samples) {
            if (s.context() > 0) {
                double off =
                        cost.nanos(s.length(), 0) + term.nanos(s.length(), s.context()) - s.nanos();
                sum += off * off;
            }
        }
        return sum;
    }

    @Test
    void repeatedMeasurementsCountAsTheirMean() {
        MeasuredSliceCost cost =
                MeasuredSliceCost.of(
                        List.of(new SliceSample(8, 0, 100), new SliceSample(8, 0, 104)));

        assertThat(cost.nanos(8, 0)).isEqualTo(102);
        assertThat(cost.nanos(8, 500)).isEqualTo(102);
    }

    @Test
    void refusesTooFewSamples() {
        var alone = new SliceSample(8, 0, 100);
        var one = new SliceSample(8, 8, 110);
        assertThatThrownBy(() -> MeasuredSliceCost.of(List.of(alone, one)))
                .hasMessageContaining("got 1 samples");
        assertThatThrownBy(() -> MeasuredSliceCost.of(List.of(alone, one, one, one, one)))
                .hasMessageContaining("different");
        assertThatThrownBy(() -> new SliceSample(0, 0, 1)).hasMessageContaining("1 token");
    }

    @Test
    void betweenMeasuredLengthsItRunsStraight() {
        MeasuredSliceCost cost =
                MeasuredSliceCost.of(
                        List.of(
                                new SliceSample(64, 0, 1_000),
                                new SliceSample(128, 0, 1_400),
                                new SliceSample(128, 0, 1_600),
                                new SliceSample(256, 0, 3_500)));

        assertThat(cost.nanos(8, 0)).isEqualTo(1_000);
        assertThat(cost.nanos(64, 0)).isEqualTo(1_000);
        assertThat(cost.nanos(96, 0)).isEqualTo(1_250);
        assertThat(cost.nanos(128, 0)).isEqualTo(1_500);
        assertThat(cost.nanos(192, 0)).isEqualTo(2_500);
        assertThat(cost.nanos(320, 0)).isEqualTo(4_500);
        assertThat(MeasuredSliceCost.of(List.of(new SliceSample(64, 0, 100))).nanos(96, 0))
                .isEqualTo(150);
        assertThatThrownBy(() -> MeasuredSliceCost.of(List.of(new SliceSample(4, 4, 9))))
                .hasMessageContaining("a slice without context among the samples");
    }

    @Test
    void whatTheContextAddsIsFittedToStraightLinesToo() {
        // t = 100 + 3 i + 2 i j, on which lines are exact
        List<SliceSample> samples = new ArrayList<>();
        for (int length : new int[] {32, 64, 128}) {
            for (int context = 0; context < 512; context += length) {
                samples.add(
                        new SliceSample(length, context, 100 + 3 * length + 2L * length * context));
            }
        }

        MeasuredSliceCost cost = MeasuredSliceCost.of(samples);

        assertThat(cost.nanos(72, 200)).isEqualTo(100 + 3 * 72 + 2 * 72 * 200);
        assertThat(cost.contextTerm().error().worst()).isLessThan(1e-9);
    }
}
