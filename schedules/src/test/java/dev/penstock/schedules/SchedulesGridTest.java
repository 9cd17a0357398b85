package dev.penstock.schedules;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.LegalShapes;
import dev.penstock.schedules.generate.base.GenerateOptions;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.ir.TorchCsv;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.lower.LoweringOptions;
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
    void isValidAsComputationsAndWhenLoweredForItsBuffersOrForOnePerChannel(String kind) {
        for (Schedule schedule : everySmall(kind)) {
            int lastStage = schedule.shape().stages() - 1;
            List<List<Integer>> tied = lastStage == 0 ? List.of() : List.of(List.of(0, lastStage));
            var options = LoweringOptions.plain().withSharedGroups(tied);
            Schedule lowered = Lowering.lower(schedule, options);
            Schedule forOne = Lowering.lower(schedule, options.withCapacity(1));

            assertThat(schedule.isComputeOnly()).isTrue();
            ScheduleValidator.validate(schedule).orThrow();
            runs(lowered, Conditions.training().with(InFlight.auto(lowered)));
            runs(forOne, Conditions.training().with(InFlight.uniform(1)));
        }
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void isValidAsAnEvaluation(String kind) {
        var forOne = LoweringOptions.plain().withCapacity(1);
        Conditions conditions = Conditions.forwardOnly();
        for (Schedule schedule : everySmall(kind)) {
            Schedule evaluation = Lowering.lowerForwardOnly(schedule);

            runs(evaluation, conditions.with(InFlight.auto(evaluation)));
            runs(Lowering.lowerForwardOnly(schedule, forOne), conditions.with(InFlight.uniform(1)));
        }
    }

    private static void runs(Schedule lowered, Conditions conditions) {
        ScheduleValidator.validate(lowered, conditions).orThrow();
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

    /** PyTorch knows no pairs of two forwards. */
    private static List<String> kindsOfPyTorch() {
        return kinds().stream().filter(kind -> !kind.equals("stp")).toList();
    }

    @ParameterizedTest
    @MethodSource("kindsOfPyTorch")
    void readsBackFromTorchCsv(String kind) {
        for (Schedule schedule : everySmall(kind)) {
            Schedule lowered = Lowering.lower(schedule);

            assertSameOrder(TorchCsv.read(TorchCsv.print(schedule)).schedule(), schedule);
            assertSameOrder(TorchCsv.read(TorchCsv.print(lowered)).schedule(), lowered);
        }
    }

    /** That format does not keep names. */
    private static void assertSameOrder(Schedule read, Schedule written) {
        assertThat(read.programs()).isEqualTo(written.programs());
        assertThat(read.placement()).isEqualTo(written.placement());
        assertThat(read.shape()).isEqualTo(written.shape());
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void takesAsLongWithWrittenTransfersAsWithout(String kind) {
        CostModel costs = CostModel.split(3, 2, 4, 2);
        for (Schedule schedule : everySmall(kind)) {
            long implied = ScheduleSimulator.simulate(schedule, costs).makespanNanos();
            long written =
                    ScheduleSimulator.simulate(Lowering.lower(schedule), costs).makespanNanos();

            assertThat(written).as("%s %s", kind, schedule.shape()).isEqualTo(implied);
        }
    }

    /**
     * Buffers are counted for a forward of 1 and a backward of 2, and are enough for other costs.
     */
    @ParameterizedTest
    @MethodSource("kinds")
    void losesNoTimeToFreeTransfersWithTheBuffersThatARunGetsByItself(String kind) {
        for (Schedule schedule : everySmall(kind)) {
            Schedule lowered = Lowering.lower(schedule);
            InFlight buffers = InFlight.auto(lowered).max(InFlight.uniform(2));
            for (CostModel costs : List.of(CostModel.unit(), CostModel.split(3, 2, 4, 0))) {
                long ideal = ScheduleSimulator.simulate(schedule, costs).makespanNanos();
                long lasts = ScheduleSimulator.simulate(lowered, costs, buffers).makespanNanos();

                assertThat(lasts).as("%s %s", kind, schedule.shape()).isEqualTo(ideal);
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
