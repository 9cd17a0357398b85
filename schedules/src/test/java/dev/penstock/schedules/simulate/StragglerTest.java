package dev.penstock.schedules.simulate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.schedules.generate.OneForwardOneBackward;
import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import org.junit.jupiter.api.Test;

class StragglerTest {
    private static final Schedule SCHEDULE = OneForwardOneBackward.schedule(PipelineShape.of(4, 8));
    private static final CostModel COSTS = CostModel.of(10, 20, 3);

    private static long makespan(CostModel costs) {
        return ScheduleSimulator.simulate(SCHEDULE, costs).makespanNanos();
    }

    @Test
    void aSlowLastRankSetsThePace() {
        // F and B of every other rank, then all work of the slow one without a gap
        long others = 3 * (30 + 2 * 3);

        assertThat(makespan(Straggler.ofRank(COSTS, 3, 4))).isEqualTo(others + 8 * 120);
        assertThat(makespan(Straggler.ofRank(COSTS, 3, 1))).isEqualTo(makespan(COSTS));
    }

    @Test
    void aSlowOpOfThePacemakerDelaysTheStepByItsExcess() {
        CostModel free = CostModel.of(10, 20, 0);

        assertThat(makespan(Straggler.ofOp(free, 3, 5, 2.5))).isEqualTo(makespan(free) + 30);
    }

    @Test
    void everythingElseCostsWhatItDid() {
        var slow = Straggler.ofRank(UnitCosts.parse("transfer=5,link=6,gather=7"), 1, 3);
        var ops = SCHEDULE.program(1).ops();
        var channel = new Channel(0, 1);
        var unit = new WorkUnit(1, 0, 0);
        var gather = new Op.GatherParameters(1, LayerRange.ALL);

        assertThat(slow.nanos(1, 0, ops.getFirst())).isEqualTo(3);
        assertThat(slow.nanos(0, 0, ops.getFirst())).isEqualTo(1);
        assertThat(slow.latencyNanos(channel)).isEqualTo(5);
        assertThat(slow.occupancyNanos(channel, unit)).isEqualTo(6);
        assertThat(slow.backgroundNanos(1, gather)).isEqualTo(7);
    }

    @Test
    void nonsenseIsRefused() {
        assertThatThrownBy(() -> Straggler.ofRank(COSTS, 0, -1))
                .hasMessageContaining("got rank 0, op OptionalInt.empty, factor -1.0");
        assertThatThrownBy(() -> Straggler.ofRank(COSTS, 0, Double.NaN))
                .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> Straggler.ofRank(COSTS, -1, 1))
                .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> Straggler.ofOp(COSTS, 0, -1, 1))
                .isInstanceOf(IllegalArgumentException.class);
    }
}
