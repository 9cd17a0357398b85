package dev.penstock.runtime.speed;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.planning.PlannedModel;
import dev.penstock.runtime.speed.SpeedEstimate.Sample;
import dev.penstock.schedules.plan.Plan;
import dev.penstock.schedules.plan.PlanReport;
import dev.penstock.schedules.plan.Planner;
import dev.penstock.schedules.plan.SearchLimits;
import dev.penstock.schedules.plan.SearchSpace;
import dev.penstock.schedules.plan.work.Hardware;
import dev.penstock.schedules.plan.work.TrainingBytes;
import dev.penstock.schedules.plan.work.ZeroStage;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class SpeedEstimateTest {
    private static final LinkRate LINK = new LinkRate(1 << 20, 2e9, 700);

    @ParameterizedTest
    @EnumSource
    void isTheTimeOfTheSameChoiceAmongThePlans(Sample sample) {
        Hardware hardware = SpeedEstimate.hardware(2, 64L << 30, 2e11, 2e10, LINK);

        SpeedEstimate estimate =
                SpeedEstimate.of(sample, "float32", TrainingBytes.FP32, hardware).orElseThrow();

        PlanReport report =
                Planner.plan(
                        SpeedEstimate.request(sample, TrainingBytes.FP32, hardware),
                        new SearchSpace(
                                List.of("1f1b"),
                                List.of(1),
                                List.of(1),
                                Set.of(ZeroStage.NONE),
                                List.of(false)),
                        new SearchLimits(1_000, Long.MAX_VALUE, Long.MAX_VALUE));
        assertThat(report.plans())
                .filteredOn(plan -> plan.choice().equals(SpeedEstimate.choice(sample, hardware)))
                .extracting(Plan::stepNanos)
                .containsExactly(estimate.stepNanos());
        assertThat(estimate.tokensPerSecond())
                .isEqualTo(
                        1e9 * sample.sequences() * sample.model().context() / estimate.stepNanos());
    }

    /** A product needs 2 FLOPs for a weight and token, in a training step three times. */
    @ParameterizedTest
    @EnumSource
    void isNotBelowTheTimeOfTheProducts(Sample sample) {
        Hardware hardware = SpeedEstimate.hardware(1, 64L << 30, 2e11, 2e12, LINK);

        SpeedEstimate estimate =
                SpeedEstimate.of(sample, "float32", TrainingBytes.FP32, hardware).orElseThrow();

        double tokens = (double) sample.sequences() * sample.model().context();
        double least =
                6 * tokens * sample.model().layerMatrixParameters(0) * sample.model().layers();
        assertThat(estimate.stepNanos() / 1e9).isBetween(least / 2e11, 3 * least / 2e11);
    }

    @ParameterizedTest
    @EnumSource
    void samplesAreTheConfigurationsOfTheirNames(Sample sample) {
        RunConfig config =
                ConfigLoader.loadOfRun(
                                Path.of("../sample-configs", sample.title() + ".conf"), List.of())
                        .config();

        assertThat(PlannedModel.of(config)).isEqualTo(PlannedModel.of(sample.model()));
        assertThat(config.batch().sequences()).isEqualTo(sample.sequences());
        assertThat(config.batch().microBatches()).isEqualTo(sample.sequences());
        assertThat(config.pipeline().stages()).isEqualTo(2);
    }
}
