package dev.penstock.runtime.metrics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.schedules.ir.PipelineShape;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class PipelineMeterTest {
    @ParameterizedTest
    @CsvSource({"1f1b, 1", "gpipe, 1", "terapipe, 4", "seq1f1b, 4"})
    void aPerfectStepHasThePredictedBubble(String kind, int slices) {
        SimulatedRun run = SimulatedRun.tied(kind, PipelineShape.of(3, 8, slices));

        StepMeasure measure = new PipelineMeter(run.schedule()).measure(run.perfect(1));

        assertThat(measure.times().bubble()).isEqualTo(measure.ideal().bubble()).isBetween(.05, .5);
        assertThat(measure.efficiency()).isEqualTo(1);
    }

    @Test
    void theBubbleOfGPipeIsTheTextbooks() {
        // one stage per rank and equal stages: (ranks - 1) / (micro-batches + ranks - 1)
        SimulatedRun run = SimulatedRun.of("gpipe", PipelineShape.of(2, 8));
        StepReport even = withComputeTimes(run, 5_000, 10_000);

        StepMeasure measure = new PipelineMeter(run.schedule()).measure(even);

        assertThat(measure.ideal().bubble()).isCloseTo(1.0 / 9, within(1e-9));
        assertThat(measure.ideal().makespanNanos()).isEqualTo(9 * 15_000);
    }

    @Test
    void aNoisyStepIsLessEfficientThanItsIdeal() {
        SimulatedRun run = SimulatedRun.tied("1f1b", PipelineShape.of(4, 8));

        StepMeasure measure = new PipelineMeter(run.schedule()).measure(run.noisy(1));

        assertThat(measure.efficiency()).isBetween(0.8, 0.999);
        assertThat(measure.times().bubble()).isGreaterThan(measure.ideal().bubble());
    }

    @Test
    void allActivitiesButTheOptimizerAddUpToTheSpan() {
        SimulatedRun run = SimulatedRun.tied("1f1b", PipelineShape.of(3, 5));

        StepTimes times = StepTimes.of(run.schedule(), run.noisy(7));

        for (int rank = 0; rank < 3; rank++) {
            long sum = 0;
            for (Activity activity : Activity.values()) {
                sum += activity == Activity.UPDATE ? 0 : times.nanos(rank, activity);
            }
            assertThat(sum).isEqualTo(times.spanNanos());
            assertThat(times.nanos(rank, Activity.UPDATE)).isEqualTo(3_000_000);
            assertThat(times.nanos(rank, Activity.RECEIVE)).isPositive();
        }
    }

    @Test
    void whatTheMeasuredStepSpentMoreThanTheIdealOneIsTheDifferenceOfTheirSpans() {
        SimulatedRun run = SimulatedRun.tied("seq1f1b", PipelineShape.of(3, 6, 2));

        StepMeasure measure = new PipelineMeter(run.schedule()).measure(run.noisy(1));

        StepTimes ideal = measure.ideal().times();
        double more = 0;
        for (Activity activity :
                List.of(Activity.SEND, Activity.RECEIVE, Activity.REDUCE, Activity.IDLE)) {
            more += measure.times().meanNanos(activity) - ideal.meanNanos(activity);
        }
        assertThat(more).isCloseTo(measure.times().spanNanos() - ideal.spanNanos(), within(100.0));
    }

    @Test
    void aReportIsMeasuredOnce() {
        SimulatedRun run = SimulatedRun.of("1f1b", PipelineShape.of(2, 4));
        PipelineMeter meter = new PipelineMeter(run.schedule());
        StepReport report = run.noisy(1);

        assertThat(meter.measure(report)).isSameAs(meter.measure(report));
        assertThat(meter.measure(run.noisy(2))).isNotSameAs(meter.measure(report));
    }

    @Test
    void aLargeScheduleIsSimulatedNowAndThen() {
        SimulatedRun run = SimulatedRun.of("1f1b", PipelineShape.of(8, 128));
        PipelineMeter meter = new PipelineMeter(run.schedule());

        StepMeasure first = meter.measure(run.noisy(1));
        StepMeasure second = meter.measure(run.noisy(2));

        assertThat(second.ideal()).isSameAs(first.ideal());
        assertThat(second.times()).isNotEqualTo(first.times());
    }

    @Test
    void timesOfAnotherProgramAreRefused() {
        SimulatedRun run = SimulatedRun.of("1f1b", PipelineShape.of(2, 4));
        SimulatedRun other = SimulatedRun.of("1f1b", PipelineShape.of(2, 5));

        assertThatThrownBy(() -> new PipelineMeter(run.schedule()).measure(other.perfect(1)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("expected the times of");
    }

    /** A report whose computations took the same everywhere; when they ran is of no interest. */
    private static StepReport withComputeTimes(SimulatedRun run, long forward, long backward) {
        StepReport report = run.perfect(1);
        List<RankStep> ranks =
                report.ranks().stream()
                        .map(rank -> withComputeTimes(run, rank, forward, backward))
                        .toList();
        return new StepReport(1, 1, 1, 1, report.startNanos(), report.endNanos(), ranks);
    }

    private static RankStep withComputeTimes(
            SimulatedRun run, RankStep rank, long forward, long backward) {
        long[] ends = rank.opEndNanos().clone();
        for (int i = 0; i < ends.length; i++) {
            ends[i] =
                    switch (Activity.of(run.schedule().program(rank.rank()).ops().get(i))) {
                        case FORWARD -> rank.opStartNanos()[i] + forward;
                        case BACKWARD -> rank.opStartNanos()[i] + backward;
                        case SEND, RECEIVE, REDUCE, IDLE, UPDATE -> ends[i];
                    };
        }
        return new RankStep(rank.rank(), rank.opStartNanos(), ends, 0, 0, 0, 0);
    }
}
