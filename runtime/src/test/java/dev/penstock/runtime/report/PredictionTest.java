package dev.penstock.runtime.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.runtime.metrics.RankSteps;
import dev.penstock.runtime.metrics.SimulatedRun;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.simulate.Timeline;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Steps whose op times are made up, so that it is known how wrong a prediction must be. */
class PredictionTest {
    private static final long FORWARD = 4_000_000;
    private static final long BACKWARD = 8_000_000;

    private final Schedule schedule =
            Lowering.lower(Generators.generate("1f1b", PipelineShape.of(2, 4)));

    @Test
    void whereOpsTakeAsLongAsBeforeThePredictionIsRight() {
        SimulatedRun run = SimulatedRun.of("1f1b", PipelineShape.of(4, 8));

        Prediction prediction =
                Prediction.of(
                                run.schedule(),
                                RankGrid.pipeline(4),
                                List.of(run.perfect(1), run.perfect(2), run.perfect(3)),
                                (costs, _) -> costs)
                        .orElseThrow();

        assertThat(prediction.makespanError()).isZero();
        assertThat(prediction.unseen()).extracting(Prediction.Unseen::step).containsExactly(2L);
        assertThat(new PredictionTables(prediction).kinds())
                .contains("<td>forward</td><td>32</td>", "+0.0 %")
                .doesNotContain("-");
    }

    /** In the steps that the profile has not seen, rank 1 is a quarter slower. */
    @Test
    void aRankThatBecameSlowerIsNamedWithItsOpsAndWithWhoWaitsForIt() {
        List<StepReport> steps = List.of(step(1, 1, 1), step(2, 1, 1.25), step(3, 1, 1));

        Prediction prediction =
                Prediction.of(schedule, RankGrid.pipeline(2), steps, (costs, _) -> costs)
                        .orElseThrow();

        long slow = prediction.median().makespanNanos();
        long foretold = prediction.simulated().makespanNanos();
        assertThat(foretold)
                .as("F F of rank 0, then pairs of rank 1, then B")
                .isEqualTo(60_000_000L);
        assertThat(slow).isGreaterThan(foretold);
        assertThat(prediction.makespanError())
                .isCloseTo((double) (foretold - slow) / slow, within(1e-12));
        var tables = new PredictionTables(prediction);
        assertThat(tables.kinds()).as("half of the ops took 5/4").contains("-11.1 %");
        assertThat(tables.ranks())
                .contains("<td>0</td><td>48.0 ms</td><td>48.0 ms</td><td>+0.0 %</td>")
                .contains("<td>1</td><td>48.0 ms</td><td>60.0 ms</td><td>-20.0 %</td>");
        assertThat(tables.slowerOps())
                .contains("<td>1</td><td>8.00 ms</td><td>10.0 ms</td><td>2.00 ms</td>")
                .doesNotContain("<td>0</td><td>8.00 ms</td>");
        assertThat(tables.waits()).contains("<tr><td>0</td><td>1</td>");
        assertThat(tables.waits().indexOf("<td>0</td><td>1</td>"))
                .as("what grew most comes first")
                .isLessThan(tables.waits().indexOf("<td>1</td><td>0</td>"));
    }

    @Test
    void theSlowestPipelineOfAGridMakesTheMakespan() {
        var grid = new RankGrid(2, 1, 1, 2);
        List<StepReport> steps = new ArrayList<>();
        for (int step = 1; step <= 2; step++) {
            List<RankStep> ranks = new ArrayList<>(step(step, 1, 1).ranks());
            step(step, 1.5, 1.5)
                    .ranks()
                    .forEach(
                            rank ->
                                    ranks.add(
                                            RankSteps.of(
                                                    rank.rank() + 2,
                                                    rank.opStartNanos(),
                                                    rank.opEndNanos(),
                                                    0,
                                                    0,
                                                    0,
                                                    0)));
            steps.add(new StepReport(step, 1, 1, 1, 0, 1, ranks));
        }

        Prediction prediction =
                Prediction.of(schedule, grid, steps, (costs, _) -> costs).orElseThrow();

        assertThat(prediction.median().makespanNanos()).isEqualTo(90_000_000L);
        assertThat(prediction.simulated().makespanNanos())
                .as("the mean of both")
                .isEqualTo(75_000_000L);
        assertThat(new PredictionTables(prediction).ranks())
                .contains("<td>3</td><td>60.0 ms</td><td>72.0 ms</td><td>-16.7 %</td>");
    }

    @Test
    void oneStepForetellsNothing() {
        assertThat(
                        Prediction.of(
                                schedule,
                                RankGrid.pipeline(2),
                                List.of(step(1, 1, 1)),
                                (costs, _) -> costs))
                .isEmpty();
    }

    /** A step in which the ops of each rank take so many times the usual; transfers are free. */
    private StepReport step(long number, double... slow) {
        Timeline timeline =
                ScheduleSimulator.simulate(
                        schedule,
                        (rank, position, op) ->
                                switch (op) {
                                    case Op.Forward _ -> Math.round(slow[rank] * FORWARD);
                                    case Op.Backward _ -> Math.round(slow[rank] * BACKWARD);
                                    default -> 0;
                                });
        List<RankStep> ranks = new ArrayList<>();
        for (int rank = 0; rank < 2; rank++) {
            int ops = schedule.program(rank).ops().size();
            long[] starts = new long[ops];
            long[] ends = new long[ops];
            for (int i = 0; i < ops; i++) {
                starts[i] = timeline.startNanos(rank, i);
                ends[i] = timeline.endNanos(rank, i);
            }
            ranks.add(RankSteps.of(rank, starts, ends, 0, 0, 0, 0));
        }
        return new StepReport(number, 1, 1, 1, 0, 1, ranks);
    }
}
