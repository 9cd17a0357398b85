package dev.penstock.schedules.simulate.apart;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.simulate.Timeline;
import dev.penstock.schedules.simulate.UnitCosts;
import java.util.List;
import org.junit.jupiter.api.Test;

/** GPipe on two ranks, four micro-batches of 1 and 2: (4 + 1) 3 = 15, the second begins after 1. */
class ExchangingStepsTest {
    private static final Timeline STEP =
            ScheduleSimulator.simulate(
                    Generators.generate("gpipe", PipelineShape.of(2, 4, 1)),
                    UnitCosts.parse("forward=1,backward=2"));

    @Test
    void withoutALagTheRankWithLeastTimeHoldsUpAll() {
        long[][] exchanges = {{7, 3}, {2, 9}, {0, 1}};

        ExchangingSteps steps = ExchangingSteps.of(STEP, exchanges, 10, 0);

        assertThat(steps).isEqualTo(new ExchangingSteps(15, List.of(22L, 23L, 15L), 16.5));
    }

    @Test
    void aLagHidesSoManySteps() {
        long[][] exchanges = {{29, 0}, {31, 0}, {50, 61}};

        assertThat(ExchangingSteps.of(STEP, exchanges, 10, 2))
                .isEqualTo(new ExchangingSteps(15, List.of(15L, 16L, 45L), 18.1));
    }
}
