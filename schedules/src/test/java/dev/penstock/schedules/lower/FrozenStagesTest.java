package dev.penstock.schedules.lower;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.RandomOrders;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.OneForwardOneBackward;
import dev.penstock.schedules.ir.FrozenStages;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.simulate.MemoryProfile;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.simulate.UnitCosts;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.MemoryModel;
import dev.penstock.schedules.validate.RankBytes;
import dev.penstock.schedules.validate.ScheduleValidator;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What is not trained is not computed backward, and nobody sends it gradients. */
class FrozenStagesTest {
    private static String programs(Schedule schedule) {
        String text = ScheduleText.print(schedule);
        return text.substring(text.indexOf("rank 0:"));
    }

    private static Schedule lowered(Schedule order, Integer... frozen) {
        return Lowering.lower(
                order,
                LoweringOptions.plain()
                        .withFrozen(new FrozenStages(Set.of(frozen)))
                        .withReduction(GradientReduction.PER_STEP));
    }

    private static Conditions conditions(Integer... frozen) {
        return Conditions.training().withReplicas().withFrozen(new FrozenStages(Set.of(frozen)));
    }

    @Test
    void leadingFrozenStagesRunForwardAloneAndGetNoGradients() {
        Schedule order = OneForwardOneBackward.schedule(PipelineShape.of(3, 2));

        Schedule lowered = lowered(order, 0);

        assertThat(programs(lowered))
                .isEqualTo(
                        """
                        rank 0: 0F0 0SEND_F0 0F1 0SEND_F1
                        rank 1: 1RECV_F0 1F0 1SEND_F0 1RECV_F1 1F1 1SEND_F1 1RECV_B0 1B0 1RECV_B1 1B1 1REDUCE_GRAD
                        rank 2: 2RECV_F0 2F0 2B0 2SEND_B0 2RECV_F1 2F1 2B1 2SEND_B1 2REDUCE_GRAD
                        """);
        assertThat(ScheduleValidator.validate(lowered, conditions(0)).isValid()).isTrue();
        assertThat(ScheduleValidator.validate(lowered, conditions()).describe())
                .contains("rank 0 has no 0B0", "rank 1 has no 1SEND_B0", "0REDUCE_GRAD");
    }

    @Test
    void aFrozenStageBehindATrainedOnePassesGradientsOn() {
        Schedule split = SplitBackward.in(OneForwardOneBackward.schedule(PipelineShape.of(3, 1)));

        Schedule lowered = lowered(split, 1);

        assertThat(programs(lowered))
                .isEqualTo(
                        """
                        rank 0: 0F0 0SEND_F0 0RECV_B0 0I0 0W0 0REDUCE_GRAD
                        rank 1: 1RECV_F0 1F0 1SEND_F0 1RECV_B0 1I0 1SEND_B0
                        rank 2: 2RECV_F0 2F0 2I0 2SEND_B0 2W0 2REDUCE_GRAD
                        """);
        assertThat(ScheduleValidator.validate(lowered, conditions(1)).isValid()).isTrue();
    }

    @Test
    void theJudgeNamesBackwardsThatNobodyNeeds() {
        Schedule lowered = Lowering.lower(OneForwardOneBackward.schedule(PipelineShape.of(2, 1)));

        String findings =
                ScheduleValidator.validate(
                                lowered,
                                Conditions.training().withFrozen(new FrozenStages(Set.of(0))))
                        .describe();

        assertThat(findings)
                .contains("0B0 is a backward before the first stage that trains anything")
                .contains("0RECV_B0 comes to a stage that neither trains anything")
                .contains("1SEND_B0 goes to a stage that neither trains anything");
    }

    static Stream<Schedule> orders() {
        Stream<Schedule> generated =
                Generators.kinds().stream()
                        .flatMap(
                                kind ->
                                        Stream.of(1, 2, 4)
                                                .flatMap(
                                                        chunks ->
                                                                Stream.of(1, 2)
                                                                        .map(
                                                                                slices ->
                                                                                        shape(
                                                                                                chunks,
                                                                                                slices)))
                                                .flatMap(shape -> generated(kind, shape)));
        return Stream.of(generated, RandomOrders.some(60), RandomOrders.paired(30))
                .flatMap(each -> each);
    }

    private static PipelineShape shape(int chunks, int slices) {
        return new PipelineShape(2, chunks, 4, slices == 1 ? List.of(1) : List.of(1, 1));
    }

    /** Nothing where the kind does not run in the shape. */
    private static Stream<Schedule> generated(String kind, PipelineShape shape) {
        try {
            return Stream.of(Generators.generate(kind, shape));
        } catch (IllegalArgumentException e) {
            return Stream.of();
        }
    }

    @ParameterizedTest
    @MethodSource("orders")
    void everyOrderIsProvedIsNoSlowerAndHoldsNoMore(Schedule order) {
        int stages = order.shape().stages();
        var random = new Random(stages);
        for (int leading = 0; leading < stages; leading++) {
            Set<Integer> frozen = new TreeSet<>();
            for (int stage = 0; stage < stages; stage++) {
                boolean later = stage > leading && random.nextBoolean();
                if (stage < leading || later) {
                    frozen.add(stage);
                }
            }
            provedFor(order, new FrozenStages(frozen));
        }
    }

    private static void provedFor(Schedule order, FrozenStages frozen) {
        var options = LoweringOptions.plain().withReduction(GradientReduction.PER_STEP);
        Schedule full = Lowering.lower(order, options);
        Schedule lowered = Lowering.lower(order, options.withFrozen(frozen));
        Conditions conditions = Conditions.training().withReplicas().withFrozen(frozen);

        assertThat(
                        ScheduleValidator.validate(lowered, conditions.with(InFlight.auto(lowered)))
                                .describe())
                .as("%s, frozen %s", order.name(), frozen)
                .endsWith("is valid");
        assertThat(makespan(lowered)).isLessThanOrEqualTo(makespan(full));
        assertThat(peaks(lowered).stream().mapToInt(Integer::intValue).sum())
                .isLessThanOrEqualTo(peaks(full).stream().mapToInt(Integer::intValue).sum());
        assertThat(lowered.programs().stream().flatMap(p -> p.ops().stream()))
                .noneMatch(op -> op instanceof Op.InputGradient && !frozen.hasBackward(op.stage()))
                .noneMatch(op -> op instanceof Op.BackwardWeight && !frozen.trains(op.stage()))
                .noneMatch(op -> op instanceof Op.ReduceGradients && !frozen.trains(op.stage()))
                .noneMatch(
                        op -> op instanceof Op.SendGradient && !frozen.hasBackward(op.stage() - 1));
    }

    private static long makespan(Schedule lowered) {
        return ScheduleSimulator.simulate(lowered, UnitCosts.defaults(), InFlight.unbounded())
                .makespanNanos();
    }

    private static List<Integer> peaks(Schedule lowered) {
        return MemoryProfile.of(lowered, PassKind.TRAINING).ranks().stream()
                .map(MemoryProfile.RankPeak::peakUnits)
                .toList();
    }

    @Test
    void aStageThatRunsForwardAloneHoldsOneUnitAtATime() {
        Schedule order = Generators.generate("gpipe", PipelineShape.of(2, 4));
        MemoryModel model = MemoryModel.uniform(order.shape(), 100, 1, 0);

        Schedule lowered = lowered(order, 0);

        assertThat(peaks(lowered)).containsExactly(1, 4);
        assertThat(RankBytes.of(lowered, PassKind.TRAINING, model))
                .extracting(RankBytes::peakBytes)
                .containsExactly(100L, 400L);
    }

    @Test
    void leavingOutAnyOtherOpIsRefused() {
        Schedule lowered = lowered(OneForwardOneBackward.schedule(PipelineShape.of(3, 2)), 0, 1);
        for (RankProgram program : lowered.programs()) {
            for (int i = 0; i < program.ops().size(); i++) {
                List<Op> ops = new ArrayList<>(program.ops());
                Op gone = ops.remove(i);
                List<RankProgram> programs = new ArrayList<>(lowered.programs());
                programs.set(program.rank(), new RankProgram(program.rank(), ops));
                assertThat(
                                ScheduleValidator.validate(
                                                lowered.withPrograms(programs), conditions(0, 1))
                                        .isValid())
                        .as("without %s", gone)
                        .isFalse();
            }
        }
    }
}
