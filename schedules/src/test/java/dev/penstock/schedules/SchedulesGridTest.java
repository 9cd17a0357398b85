package dev.penstock.schedules;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.generate.BackwardOrder;
import dev.penstock.schedules.generate.GenerateOptions;
import dev.penstock.schedules.generate.Generators;
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

/** Every generator in every small shape. */
class SchedulesGridTest {
    private static List<Schedule> everySmallSchedule() {
        var schedules = new ArrayList<Schedule>();
        for (int ranks = 1; ranks <= 6; ranks++) {
            for (int microBatches = 1; microBatches <= 10; microBatches++) {
                for (int slices = 1; slices <= 4; slices++) {
                    var shape = PipelineShape.of(ranks, microBatches, slices);
                    schedules.add(Generators.generate("terapipe", shape));
                    schedules.add(Generators.generate("seq1f1b", shape));
                }
                var whole = PipelineShape.of(ranks, microBatches);
                schedules.add(Generators.generate("1f1b", whole));
                for (BackwardOrder order : BackwardOrder.values()) {
                    var options = GenerateOptions.defaults().withBackwardOrder(order);
                    schedules.add(Generators.generate("gpipe", whole, options));
                }
            }
        }
        return schedules;
    }

    @Test
    void isValidAsComputations() {
        for (Schedule schedule : everySmallSchedule()) {
            ScheduleValidator.validate(schedule).orThrow();
        }
    }

    @Test
    void isValidWhenLoweredEvenWithOneCreditPerChannel() {
        for (Schedule schedule : everySmallSchedule()) {
            int lastStage = schedule.shape().stages() - 1;
            Schedule lowered = Lowering.lower(schedule, List.of(List.of(0, lastStage)));

            for (InFlight inFlight : List.of(InFlight.uniform(1), InFlight.auto(lowered))) {
                ScheduleValidator.validate(lowered, Conditions.training().with(inFlight)).orThrow();
            }
        }
    }

    @Test
    void isValidAsAnEvaluation() {
        Conditions conditions = Conditions.forwardOnly().with(InFlight.uniform(1));
        for (Schedule schedule : everySmallSchedule()) {
            ScheduleValidator.validate(Lowering.lowerForwardOnly(schedule), conditions).orThrow();
        }
    }

    @Test
    void readsBackFromItsText() {
        for (Schedule schedule : everySmallSchedule()) {
            Schedule lowered = Lowering.lower(schedule);

            assertThat(ScheduleText.parse(ScheduleText.print(schedule))).isEqualTo(schedule);
            assertThat(ScheduleText.parse(ScheduleText.print(lowered))).isEqualTo(lowered);
        }
    }

    @Test
    void takesAsLongWithTransfersAsWithout() {
        CostModel costs = CostModel.of(3, 5, 2);
        for (Schedule schedule : everySmallSchedule()) {
            long implied = ScheduleSimulator.simulate(schedule, costs).makespanNanos();
            long written =
                    ScheduleSimulator.simulate(Lowering.lower(schedule), costs).makespanNanos();

            assertThat(written).as(schedule.name()).isEqualTo(implied);
        }
    }
}
