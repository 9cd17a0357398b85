package dev.penstock.schedules;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.penstock.schedules.generate.GenerateOptions;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.LegalShapes;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.ir.TorchCsv;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.ScheduleValidator;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Every generator in every small shape. */
class SchedulesGridTest {
    static List<String> kinds() {
        return Generators.kinds();
    }

    private static List<Schedule> everySmall(String kind) {
        var schedules = new ArrayList<Schedule>();
        for (PipelineShape shape : LegalShapes.everySmallShape()) {
            if (LegalShapes.canRun(kind, shape)) {
                for (GenerateOptions options : LegalShapes.optionsOf(kind, shape)) {
                    schedules.add(Generators.generate(kind, shape, options));
                }
            }
        }
        return schedules;
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void isValidAsComputationsAndWhenLoweredEvenWithOneCreditPerChannel(String kind) {
        for (Schedule schedule : everySmall(kind)) {
            int lastStage = schedule.shape().stages() - 1;
            List<List<Integer>> tied = lastStage == 0 ? List.of() : List.of(List.of(0, lastStage));
            Schedule lowered = Lowering.lower(schedule, tied);

            assertThat(schedule.isComputeOnly()).isTrue();
            ScheduleValidator.validate(schedule).orThrow();
            for (InFlight inFlight : List.of(InFlight.uniform(1), InFlight.auto(lowered))) {
                ScheduleValidator.validate(lowered, Conditions.training().with(inFlight)).orThrow();
            }
        }
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void isValidAsAnEvaluation(String kind) {
        Conditions conditions = Conditions.forwardOnly().with(InFlight.uniform(1));
        for (Schedule schedule : everySmall(kind)) {
            ScheduleValidator.validate(Lowering.lowerForwardOnly(schedule), conditions).orThrow();
        }
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void readsBackFromItsText(String kind) {
        for (Schedule schedule : everySmall(kind)) {
            Schedule lowered = Lowering.lower(schedule);

            assertThat(ScheduleText.parse(ScheduleText.print(schedule))).isEqualTo(schedule);
            assertThat(ScheduleText.parse(ScheduleText.print(lowered))).isEqualTo(lowered);
        }
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void readsBackFromTorchCsv(String kind) {
        for (Schedule schedule : everySmall(kind)) {
            Schedule lowered = Lowering.lower(schedule);

            assertSameOrder(TorchCsv.parse(TorchCsv.print(schedule)), schedule);
            assertSameOrder(TorchCsv.parse(TorchCsv.print(lowered)), lowered);
        }
    }

    /** Names are lost in that format. */
    private static void assertSameOrder(Schedule read, Schedule written) {
        assertThat(read.programs()).isEqualTo(written.programs());
        assertThat(read.placement()).isEqualTo(written.placement());
        assertThat(read.shape()).isEqualTo(written.shape());
    }

    /**
     * Elsewhere a rank may take a tensor early, so that one credit is enough, and wait for it where
     * it could work.
     */
    @ParameterizedTest
    @MethodSource("kinds")
    void takesAsLongWithTransfersAsWithoutWhereStagesTakeTurnsUnitByUnit(String kind) {
        assumeThat(kind).isNotEqualTo("terapipe-1f1b");
        CostModel costs = CostModel.split(3, 2, 4, 2);
        for (Schedule schedule : everySmall(kind)) {
            if (schedule.shape().chunks() == 1) {
                long implied = ScheduleSimulator.simulate(schedule, costs).makespanNanos();
                long written =
                        ScheduleSimulator.simulate(Lowering.lower(schedule), costs).makespanNanos();

                assertThat(written).as("%s %s", kind, schedule.shape()).isEqualTo(implied);
            }
        }
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void otherShapesAreRefusedWithNumbersThatWork(String kind) {
        for (PipelineShape shape : LegalShapes.everySmallShape()) {
            if (!LegalShapes.canRun(kind, shape)) {
                assertThatThrownBy(() -> Generators.generate(kind, shape))
                        .as("%s %s", kind, shape)
                        .isInstanceOf(IllegalArgumentException.class)
                        .hasMessageMatching(kind + " .*; try .*\\d.*");
            }
        }
    }
}
