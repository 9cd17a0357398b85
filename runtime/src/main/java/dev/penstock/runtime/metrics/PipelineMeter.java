package dev.penstock.runtime.metrics;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.CostModel;
import java.util.function.BiFunction;
import org.jspecify.annotations.Nullable;

/**
 * Measures steps against the ideal of their schedule. Measuring the same report again is free, so
 * that several listeners can share a meter. For large schedules the ideal is simulated only every
 * few steps. Thread-safe.
 */
public final class PipelineMeter {
    /** Up to this many ops, every step is simulated: well under a millisecond. */
    private static final int OPS_PER_STEP = 4096;

    private Schedule schedule;
    private final RankGrid grid;
    private final BiFunction<CostModel, Schedule, CostModel> links;
    private long stepsPerSimulation;
    private @Nullable StepReport lastReport;
    private @Nullable StepMeasure lastMeasure;
    private long measured;

    /**
     * @param schedule the lowered training program that the ranks run
     * @param grid of all ranks
     */
    public PipelineMeter(Schedule schedule, RankGrid grid) {
        this(schedule, grid, (costs, _) -> costs);
    }

    /**
     * A meter of a run whose tensors take time under way.
     *
     * @param links adds that time to the costs of a program's computations
     */
    public PipelineMeter(
            Schedule schedule, RankGrid grid, BiFunction<CostModel, Schedule, CostModel> links) {
        this.schedule = schedule;
        this.grid = grid;
        this.links = links;
        this.stepsPerSimulation = stepsPerSimulation(schedule);
    }

    private static long stepsPerSimulation(Schedule schedule) {
        long ops = schedule.programs().stream().mapToLong(program -> program.ops().size()).sum();
        return 1 + ops / OPS_PER_STEP;
    }

    /** From the next step on, the ranks run this program. */
    public synchronized void follow(Schedule other) {
        schedule = other;
        stepsPerSimulation = stepsPerSimulation(other);
        measured = 0;
    }

    /** A meter for pipeline parallelism alone. */
    public PipelineMeter(Schedule schedule) {
        this(schedule, RankGrid.pipeline(schedule.programs().size()));
    }

    /**
     * Measures a step.
     *
     * @throws IllegalArgumentException if the report is of another program
     */
    public synchronized StepMeasure measure(StepReport report) {
        StepMeasure last = lastMeasure;
        if (last != null && report.equals(lastReport)) {
            return last;
        }
        StepTimes times = StepTimes.of(schedule, grid, report);
        IdealStep ideal =
                last != null && measured % stepsPerSimulation != 0
                        ? last.ideal()
                        : IdealStep.of(times.pipelines(), costs -> links.apply(costs, schedule));
        StepMeasure measure = new StepMeasure(times, ideal);
        measured++;
        lastReport = report;
        lastMeasure = measure;
        return measure;
    }
}
