package dev.penstock.runtime.report;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.runtime.metrics.SimulatedRun;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.simulate.ProfileCosts;
import dev.penstock.schedules.simulate.ProfileText;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import java.util.List;
import org.junit.jupiter.api.Test;

class RunRecorderTest {
    private final SimulatedRun run = SimulatedRun.of("1f1b", PipelineShape.of(2, 4));

    /** The second takes three times as long as the first: twice as long in their mean. */
    @Test
    void theProfileOfAGridIsTheMeanOfItsPipelines() {
        ProfileCosts alone = profile(RankGrid.pipeline(2), 1);

        ProfileCosts both = profile(new RankGrid(2, 1, 1, 2), 3);

        assertThat(both.missing(run.schedule())).isEmpty();
        for (int stage = 0; stage < 2; stage++) {
            WorkUnit unit = new WorkUnit(stage, 0, 0);
            for (Op op : List.of(new Op.Forward(unit), new Op.Backward(unit))) {
                assertThat(both.nanos(0, 0, op)).isEqualTo(2 * alone.nanos(0, 0, op));
            }
        }
        assertThat(ScheduleSimulator.simulate(run.schedule(), both).makespanNanos())
                .isEqualTo(2 * ScheduleSimulator.simulate(run.schedule(), alone).makespanNanos());
    }

    private ProfileCosts profile(RankGrid grid, int factor) {
        RunRecorder recorder = new RunRecorder(List.of());
        for (int step = 1; step <= 3; step++) {
            recorder.onStep(
                    grid.isPipelineAlone()
                            ? run.perfect(step)
                            : SimulatedRun.withSlowerReplica(run.perfect(step), 1_000, factor));
        }
        return ProfileText.parse(recorder.profile(run.schedule(), grid, false));
    }
}
