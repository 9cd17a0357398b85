package dev.penstock.runtime.report;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.runtime.metrics.PipelineMeter;
import dev.penstock.runtime.metrics.Quantities;
import dev.penstock.runtime.metrics.StepMeasure;
import dev.penstock.runtime.metrics.StepTimes;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.CostModel;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.BiFunction;
import java.util.stream.IntStream;

/**
 * The step that the report looks at closely: the one of median duration among those traced.
 *
 * @param report of all ranks
 * @param chosenFrom how many steps were traced
 * @param measure where the time of all ranks went, and the ideal step
 * @param schedule of every pipeline
 * @param grid of all ranks
 */
record TypicalStep(
        StepReport report, int chosenFrom, StepMeasure measure, Schedule schedule, RankGrid grid) {
    /** More lanes than these make no picture: then the first pipeline stands for all. */
    private static final int MOST_LANES = 64;

    /**
     * Of the steps that were traced; empty if none was.
     *
     * @param links adds the time of tensors under way to the costs of computations
     */
    static Optional<TypicalStep> of(
            Schedule schedule,
            RankGrid grid,
            RunRecorder recorder,
            BiFunction<CostModel, Schedule, CostModel> links) {
        return recorder.typical()
                .map(
                        (StepReport report) ->
                                new TypicalStep(
                                        report,
                                        recorder.size(),
                                        new PipelineMeter(schedule, grid, links).measure(report),
                                        schedule,
                                        grid));
    }

    /** Its number. */
    long step() {
        return report.step();
    }

    /** The measured step of every pipeline above the ideal one of their mean op times. */
    StepGantt gantt() {
        List<StepGantt.Panel> panels = new ArrayList<>();
        List<Integer> pipelines = grid.pipelines();
        boolean all = grid.ranks() <= MOST_LANES;
        for (int first : all ? pipelines : pipelines.subList(0, 1)) {
            panels.add(measured(first));
        }
        panels.add(
                new StepGantt.Panel(
                        "simulated with the same op times: %s, bubble %s"
                                .formatted(
                                        Quantities.nanos(measure.ideal().makespanNanos()),
                                        Quantities.percent(measure.ideal().bubble())),
                        measure.ideal().timeline(),
                        List.of(),
                        numbers(0)));
        return new StepGantt(panels);
    }

    private StepGantt.Panel measured(int first) {
        StepReport pipeline = report.ofPipelineOf(grid, first);
        StepTimes times = StepTimes.of(schedule, pipeline);
        return new StepGantt.Panel(
                "measured: step %d%s, %s, bubble %s"
                        .formatted(
                                step(),
                                place(first),
                                Quantities.nanos(times.spanNanos()),
                                Quantities.percent(times.bubble())),
                times.pipelines().getFirst(),
                pipeline.ranks(),
                numbers(first));
    }

    private List<Integer> numbers(int first) {
        return IntStream.range(0, grid.pipeline()).mapToObj(p -> grid.sibling(first, p)).toList();
    }

    /** Where there is more than one of something: {@code , replica 1, shard 0}. */
    private String place(int rank) {
        RankPlace place = grid.placeOf(rank);
        return part(grid.data(), "replica", place.data())
                + part(grid.context(), "context part", place.context())
                + part(grid.tensor(), "shard", place.tensor());
    }

    private static String part(int of, String what, int index) {
        return of == 1 ? "" : ", %s %d".formatted(what, index);
    }
}
