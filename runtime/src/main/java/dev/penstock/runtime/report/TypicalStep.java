package dev.penstock.runtime.report;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.runtime.metrics.PipelineMeter;
import dev.penstock.runtime.metrics.Quantities;
import dev.penstock.runtime.metrics.StepMeasure;
import dev.penstock.schedules.ir.Schedule;
import java.util.List;
import java.util.Optional;

/**
 * The step that the report looks at closely: the one of median duration among those traced.
 *
 * @param step its number
 * @param chosenFrom how many steps were traced
 * @param measure where its time went, and the ideal step
 * @param ranks as reported
 */
record TypicalStep(long step, int chosenFrom, StepMeasure measure, List<RankStep> ranks) {
    TypicalStep {
        ranks = List.copyOf(ranks);
    }

    static Optional<TypicalStep> of(Schedule schedule, RankGrid grid, RunRecorder recorder) {
        return recorder.typical()
                .map(
                        (StepReport report) ->
                                new TypicalStep(
                                        report.step(),
                                        recorder.size(),
                                        new PipelineMeter(schedule, grid).measure(report),
                                        report.ofFirstPipeline(grid).ranks()));
    }

    /** The measured step above the ideal one. */
    StepGantt gantt() {
        return new StepGantt(
                List.of(
                        new StepGantt.Panel(
                                "measured: step %d, %s, bubble %s"
                                        .formatted(
                                                step,
                                                Quantities.nanos(measure.times().spanNanos()),
                                                Quantities.percent(measure.times().bubble())),
                                measure.times().timeline(),
                                ranks),
                        new StepGantt.Panel(
                                "simulated with the same op times: %s, bubble %s"
                                        .formatted(
                                                Quantities.nanos(measure.ideal().makespanNanos()),
                                                Quantities.percent(measure.ideal().bubble())),
                                measure.ideal().timeline(),
                                List.of())));
    }
}
