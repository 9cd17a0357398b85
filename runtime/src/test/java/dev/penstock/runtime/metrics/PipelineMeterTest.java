package dev.penstock.runtime.metrics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.spi.RankGrid;
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

    /** Replica 1, ranks 2 and 3, begins later and takes three times as long. */
    @Test
    void allRanksOfAGridAreMeasured() {
        SimulatedRun run = SimulatedRun.of("gpipe", PipelineShape.of(2, 8));
        RankGrid grid = new RankGrid(2, 1, 1, 2);
        StepReport alone = run.perfect(1);
        StepReport report = SimulatedRun.withSlowerReplica(alone, 5_000_000, 3);

        StepMeasure measure = new PipelineMeter(run.schedule(), grid).measure(report);

        StepTimes one = StepTimes.of(run.schedule(), alone);
        StepTimes all = measure.times();
        long span = 5_000_000 + 3 * one.spanNanos();
        assertThat(all.ranks()).hasSize(4);
        assertThat(all.spanNanos()).isEqualTo(span);
        double busy = 0;
        for (int rank = 0; rank < 2; rank++) {
            for (Activity each : List.of(Activity.FORWARD, Activity.BACKWARD)) {
                assertThat(all.nanos(2 + rank, each)).isEqualTo(3 * one.nanos(rank, each));
                busy += 4 * one.nanos(rank, each);
            }
            assertThat(all.nanos(rank, Activity.IDLE))
                    .isEqualTo(one.nanos(rank, Activity.IDLE) + span - one.spanNanos());
        }
        assertThat(all.bubble()).isCloseTo(1 - busy / (4.0 * span), within(1e-12));
        // every op takes twice as long in the mean of both
        assertThat(measure.ideal().makespanNanos()).isEqualTo(2 * one.spanNanos());
        assertThat(measure.efficiency()).isCloseTo(2.0 * one.spanNanos() / span, within(1e-12));
    }

    @Test
    void timesOfAnotherGridAreRefused() {
        SimulatedRun run = SimulatedRun.of("1f1b", PipelineShape.of(2, 4));
        PipelineMeter meter = new PipelineMeter(run.schedule(), new RankGrid(2, 1, 1, 2));

        assertThatThrownBy(() -> meter.measure(run.perfect(1)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("expected the times of 4 ranks, got those of 2");
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
        return RankSteps.of(rank.rank(), rank.opStartNanos(), ends, 0, 0, 0, 0);
    }
}
