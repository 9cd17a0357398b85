package dev.penstock.schedules;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.generate.GenerateOptions;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.OpCosts;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.ScheduleValidator;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Every order with split backwards in every small shape. */
class ZeroBubbleGridTest {
    private static final List<OpCosts> COSTS =
            List.of(OpCosts.unit(), new OpCosts(4, 3, 2, 1), new OpCosts(2, 3, 5, 4));

    private static List<Schedule> everySmallSchedule() {
        var schedules = new ArrayList<Schedule>();
        for (int ranks = 1; ranks <= 6; ranks++) {
            for (int microBatches = 1; microBatches <= 10; microBatches++) {
                for (int slices = 1; slices <= 4; slices++) {
                    var shape = PipelineShape.of(ranks, microBatches, slices);
                    schedules.add(Generators.generate("zb-h1", shape));
                    schedules.add(Generators.generate("zb-h2", shape));
                }
                var whole = PipelineShape.of(ranks, microBatches);
                for (OpCosts costs : COSTS) {
                    var options = GenerateOptions.defaults().withCosts(costs);
                    schedules.add(Generators.generate("zb-1p", whole, options));
                    schedules.add(Generators.generate("zb-2p", whole, options));
                }
                int groups = Math.max(1, microBatches / ranks);
                for (int chunks = 1; chunks <= 3 && microBatches % groups == 0; chunks++) {
                    var chunked = new PipelineShape(ranks, chunks, microBatches, List.of(1));
                    schedules.add(Generators.generate("interleaved-zb", chunked));
                }
            }
        }
        return schedules;
    }

    @Test
    void isValidAndReadableLoweredOrNot() {
        Conditions oneCredit = Conditions.training().with(InFlight.uniform(1));
        for (Schedule schedule : everySmallSchedule()) {
            Schedule lowered = Lowering.lower(schedule);

            ScheduleValidator.validate(schedule).orThrow();
            ScheduleValidator.validate(lowered, oneCredit).orThrow();
            assertThat(ScheduleText.parse(ScheduleText.print(schedule))).isEqualTo(schedule);
            assertThat(ScheduleText.parse(ScheduleText.print(lowered))).isEqualTo(lowered);
        }
    }

    @Test
    void plainPipelinesTakeAsLongWithTransfersAsWithout() {
        CostModel costs = CostModel.split(3, 5, 2, 2);
        for (Schedule schedule : everySmallSchedule()) {
            if (schedule.shape().chunks() == 1) {
                long implied = ScheduleSimulator.simulate(schedule, costs).makespanNanos();
                long written =
                        ScheduleSimulator.simulate(Lowering.lower(schedule), costs).makespanNanos();

                assertThat(written).as(schedule.name()).isEqualTo(implied);
            }
        }
    }
}
