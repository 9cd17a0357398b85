package dev.penstock.schedules;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.generate.BackwardOrder;
import dev.penstock.schedules.generate.GenerateOptions;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.ScheduleValidator;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Every generator in every small shape. */
class SchedulesGridTest {
    static Stream<Schedule> everySmallSchedule() {
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
                    var options = new GenerateOptions(order);
                    schedules.add(Generators.generate("gpipe", whole, options));
                }
            }
        }
        return schedules.stream();
    }

    @ParameterizedTest
    @MethodSource("everySmallSchedule")
    void isProvedValid(Schedule schedule) {
        ScheduleValidator.validate(schedule).orThrow();

        Schedule lowered =
                Lowering.lower(schedule, List.of(List.of(0, schedule.shape().stages() - 1)));
        for (InFlight inFlight : List.of(InFlight.uniform(1), InFlight.auto(lowered))) {
            ScheduleValidator.validate(lowered, Conditions.training().with(inFlight)).orThrow();
        }

        Schedule evaluation = Lowering.lowerForwardOnly(schedule);
        ScheduleValidator.validate(evaluation, Conditions.forwardOnly().with(InFlight.uniform(1)))
                .orThrow();
    }

    @ParameterizedTest
    @MethodSource("everySmallSchedule")
    void readsBackFromItsText(Schedule schedule) {
        Schedule lowered = Lowering.lower(schedule);

        assertThat(ScheduleText.parse(ScheduleText.print(schedule))).isEqualTo(schedule);
        assertThat(ScheduleText.parse(ScheduleText.print(lowered))).isEqualTo(lowered);
    }
}
