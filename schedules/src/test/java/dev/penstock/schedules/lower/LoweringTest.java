package dev.penstock.schedules.lower;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.schedules.RandomOrders;
import dev.penstock.schedules.generate.OneForwardOneBackward;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.ScheduleValidator;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

class LoweringTest {
    private static String programs(Schedule schedule) {
        String text = ScheduleText.print(schedule);
        return text.substring(text.indexOf("rank 0:"));
    }

    @Test
    void sendsFollowTheirOpAndReceivesPrecedeTheirs() {
        Schedule schedule = OneForwardOneBackward.schedule(PipelineShape.of(3, 2));

        assertThat(programs(Lowering.lower(schedule)))
                .isEqualTo(
                        """
                        rank 0: 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1
                        rank 1: 1RECV_F0 1F0 1SEND_F0 1RECV_F1 1F1 1SEND_F1 1RECV_B0 1B0 1SEND_B0 1RECV_B1 1B1 1SEND_B1
                        rank 2: 2RECV_F0 2F0 2B0 2SEND_B0 2RECV_F1 2F1 2B1 2SEND_B1
                        """);
    }

    @Test
    void neighboursOnOneRankHandOverWithoutATransfer() {
        Schedule vShaped =
                ScheduleText.parse(
                        """
                        ranks: 2
                        chunks: 2
                        placement: 0 1 1 0
                        micro-batches: 1
                        rank 0: 0F0 3F0 3B0 0B0
                        rank 1: 1F0 2F0 2B0 1B0
                        """);

        assertThat(programs(Lowering.lower(vShaped)))
                .isEqualTo(
                        """
                        rank 0: 0F0 0SEND_F0 3RECV_F0 3F0 3B0 3SEND_B0 0RECV_B0 0B0
                        rank 1: 1RECV_F0 1F0 2F0 2SEND_F0 2RECV_B0 2B0 1B0 1SEND_B0
                        """);
    }

    private static final Schedule BOTH_SEND_FIRST =
            ScheduleText.parse(
                    """
                    ranks: 2
                    micro-batches: 4
                    rank 0: 0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3
                    rank 1: 1F0 1F1 1B0 1B1 1F2 1F3 1B2 1B3
                    """);

    @Test
    void receivesAreLateWhereEnoughTensorsFitInAChannel() {
        Schedule lowered = Lowering.lower(BOTH_SEND_FIRST);

        assertThat(programs(lowered))
                .isEqualTo(
                        """
                        rank 0: 0F0 0SEND_F0 0F1 0SEND_F1 0F2 0SEND_F2 0F3 0SEND_F3 0RECV_B0 0B0 0RECV_B1 0B1 0RECV_B2 0B2 0RECV_B3 0B3
                        rank 1: 1RECV_F0 1F0 1RECV_F1 1F1 1B0 1SEND_B0 1B1 1SEND_B1 1RECV_F2 1F2 1RECV_F3 1F3 1B2 1SEND_B2 1B3 1SEND_B3
                        """);
        runsWith(InFlight.auto(lowered), lowered);
        runsWith(InFlight.uniform(2), lowered);
        // 0SEND_F3 and 1SEND_B1 would wait for each other
        assertThat(
                        ScheduleValidator.validate(
                                        lowered, Conditions.training().with(InFlight.uniform(1)))
                                .isValid())
                .isFalse();
        assertThat(lowered(BOTH_SEND_FIRST, 2)).isEqualTo(lowered);
    }

    @Test
    void twoNeighboursThatBothSendFirstGetTheirReceivesInTimeWhereOneTensorFits() {
        Schedule lowered = lowered(BOTH_SEND_FIRST, 1);

        assertThat(programs(lowered))
                .isEqualTo(
                        """
                        rank 0: 0F0 0SEND_F0 0F1 0SEND_F1 0F2 0SEND_F2 0F3 0SEND_F3 0RECV_B0 0B0 0RECV_B1 0B1 0RECV_B2 0B2 0RECV_B3 0B3
                        rank 1: 1RECV_F0 1F0 1RECV_F1 1F1 1B0 1SEND_B0 1B1 1RECV_F2 1SEND_B1 1F2 1RECV_F3 1F3 1B2 1SEND_B2 1B3 1SEND_B3
                        """);
        runsWith(InFlight.uniform(1), lowered);
    }

    @Test
    void anyOrderThatCanRunStillCanWithTheCapacityItIsLoweredFor() {
        int early = 0;
        for (Schedule order : RandomOrders.some(500).toList()) {
            Schedule late = Lowering.lower(order);
            runsWith(InFlight.auto(late), late);
            for (int capacity = 1; capacity <= 3; capacity++) {
                Schedule lowered = lowered(order, capacity);

                runsWith(InFlight.uniform(capacity), lowered);
                early += lowered.equals(late) ? 0 : 1;
            }
            assertThat(lowered(order, order.shape().unitsPerStage())).isEqualTo(late);
        }
        assertThat(early).isGreaterThan(100);
    }

    @Test
    void noOrderLosesTimeToWrittenTransfersWhateverOpsCost() {
        var costs = List.of(CostModel.split(3, 2, 4, 0), CostModel.split(5, 9, 1, 7));
        for (Schedule order : RandomOrders.some(500).toList()) {
            for (CostModel model : costs) {
                assertThat(ScheduleSimulator.simulate(Lowering.lower(order), model).makespanNanos())
                        .isEqualTo(ScheduleSimulator.simulate(order, model).makespanNanos());
            }
        }
    }

    @Test
    void aChannelForNothingIsRefused() {
        assertThatThrownBy(() -> LoweringOptions.plain().withCapacity(0))
                .hasMessageContaining("at least 1, got 0");
        assertThatThrownBy(() -> InsertTransfers.into(BOTH_SEND_FIRST, 0))
                .hasMessageContaining("at least 1, got 0");
    }

    private static Schedule lowered(Schedule order, int capacity) {
        return Lowering.lower(order, LoweringOptions.plain().withCapacity(capacity));
    }

    private static void runsWith(InFlight inFlight, Schedule lowered) {
        ScheduleValidator.validate(lowered, Conditions.training().with(inFlight)).orThrow();
    }

    @Test
    void membersOfASharedGroupEndWithTheirReduction() {
        Schedule schedule = OneForwardOneBackward.schedule(PipelineShape.of(3, 1));

        Schedule lowered = Lowering.lower(schedule, List.of(Set.of(2, 0)));

        assertThat(lowered.sharedGroups()).containsExactly(List.of(0, 2));
        assertThat(lowered.program(0).ops().getLast()).isEqualTo(new Op.ReduceGradients(0));
        assertThat(lowered.program(1).ops()).noneMatch(op -> op instanceof Op.ReduceGradients);
        assertThat(lowered.program(2).ops().getLast()).isEqualTo(new Op.ReduceGradients(2));
    }

    @Test
    void membersOnOneRankReduceOneAfterTheOther() {
        Schedule vShaped =
                ScheduleText.parse(
                        """
                        ranks: 1
                        chunks: 2
                        micro-batches: 1
                        rank 0: 0F0 1F0 1B0 0B0
                        """);

        Schedule lowered = Lowering.lower(vShaped, List.of(List.of(0, 1)));

        assertThat(programs(lowered))
                .isEqualTo("rank 0: 0F0 1F0 1B0 0B0 0REDUCE_GRAD 1REDUCE_GRAD\n");
        ScheduleValidator.validate(lowered).orThrow();
    }

    @Test
    void groupsWithAStageInCommonBecomeOneAndLonersNone() {
        Schedule schedule = OneForwardOneBackward.schedule(PipelineShape.of(5, 1));

        Schedule lowered =
                Lowering.lower(
                        schedule, List.of(List.of(0, 1), List.of(3, 4), List.of(2), List.of(1, 3)));

        assertThat(lowered.sharedGroups()).containsExactly(List.of(0, 1, 3, 4));
    }

    @Test
    void aGroupOfAStageThatDoesNotExistIsRefused() {
        Schedule schedule = OneForwardOneBackward.schedule(PipelineShape.of(2, 1));

        assertThatThrownBy(() -> Lowering.lower(schedule, List.of(List.of(0, 2))))
                .hasMessageContaining("stages 0 to 1 share parameters")
                .hasMessageContaining("[[0, 2]]");
    }

    @Test
    void loweringTwiceChangesNothing() {
        RandomOrders.some(50)
                .forEach(
                        order -> {
                            var groups = List.of(List.of(0, order.shape().stages() - 1));
                            Schedule once = Lowering.lower(order, groups);

                            assertThat(Lowering.lower(once, groups)).isEqualTo(once);
                        });
    }

    @Test
    void anEvaluationIsTheForwardsInTheirOrder() {
        Schedule schedule =
                Lowering.lower(
                        OneForwardOneBackward.schedule(PipelineShape.of(2, 2)),
                        List.of(List.of(0, 1)));

        Schedule evaluation = Lowering.lowerForwardOnly(schedule);

        assertThat(evaluation.name()).isEqualTo("1f1b forward");
        assertThat(programs(evaluation))
                .isEqualTo(
                        """
                        rank 0: 0F0 0SEND_F0 0F1 0SEND_F1
                        rank 1: 1RECV_F0 1F0 1RECV_F1 1F1
                        """);
    }

    @Test
    void anOrderThatCannotRunIsLoweredForTheJudgeToSee() {
        Schedule stuck =
                ScheduleText.parse(
                        """
                        ranks: 2
                        micro-batches: 1
                        rank 0: 0B0 0F0
                        rank 1: 1F0 1B0
                        """);

        assertThat(programs(Lowering.lower(stuck)))
                .isEqualTo(
                        """
                        rank 0: 0RECV_B0 0B0 0F0 0SEND_F0
                        rank 1: 1RECV_F0 1F0 1B0 1SEND_B0
                        """);
    }

    @Test
    void anOpThatDoesNotExistIsNotLowered() {
        Schedule schedule = OneForwardOneBackward.schedule(PipelineShape.of(2, 3));
        var smaller =
                new Schedule(
                        "smaller",
                        PipelineShape.of(2, 2),
                        schedule.placement(),
                        schedule.programs());

        assertThatThrownBy(() -> Lowering.lower(smaller))
                .hasMessage(
                        "cannot lower 0F2 of rank 0: smaller has no such unit; validate it first");
    }

    @Test
    void noOpIsLost() {
        RandomOrders.some(100)
                .forEach(
                        order -> {
                            Schedule lowered = Lowering.lower(order);
                            for (RankProgram program : order.programs()) {
                                assertThat(lowered.program(program.rank()).ops())
                                        .filteredOn(op -> op instanceof Op.Compute)
                                        .isEqualTo(program.ops());
                            }
                        });
    }

    @Test
    void replicasSumAStageAsSoonAsItsLastGradientIsThere() {
        Schedule schedule =
                ScheduleText.parse(
                        """
                        ranks: 1
                        chunks: 2
                        micro-batches: 2
                        rank 0: 0F0 1F0 1I0 1W0 0F1 (1F1;0B0)OVERLAP_F_B 1B1 0I1 0W1
                        """);

        assertThat(programs(reduced(schedule, GradientReduction.PER_STEP)))
                .isEqualTo(
                        "rank 0: 0F0 1F0 1I0 1W0 0F1 (1F1;0B0)OVERLAP_F_B 1B1 1REDUCE_GRAD 0I1 0W1"
                                + " 0REDUCE_GRAD\n");
        assertThat(programs(reduced(schedule, GradientReduction.PER_MICRO_BATCH)))
                .isEqualTo(
                        "rank 0: 0F0 1F0 1I0 1W0 1REDUCE_GRAD 0F1 (1F1;0B0)OVERLAP_F_B 0REDUCE_GRAD"
                                + " 1B1 1REDUCE_GRAD 0I1 0W1 0REDUCE_GRAD\n");
    }

    @Test
    void tiedStagesSumLikeOthersAndMeetWithTheirLastAtTheEnd() {
        Schedule schedule =
                ScheduleText.parse(
                        """
                        ranks: 2
                        chunks: 2
                        micro-batches: 2
                        rank 0: 0F0 2F0 2B0 0F1 0B0 0B1 2F1 2B1
                        rank 1: 1F0 3F0 3B0 1B0 1F1 3F1 3B1 1B1
                        """);

        assertThat(
                        programs(
                                InsertReductions.into(
                                        schedule,
                                        List.of(List.of(0, 3)),
                                        GradientReduction.PER_MICRO_BATCH)))
                .isEqualTo(
                        """
                        rank 0: 0F0 2F0 2B0 2REDUCE_GRAD 0F1 0B0 0REDUCE_GRAD 0B1 2F1 2B1 2REDUCE_GRAD 0REDUCE_GRAD
                        rank 1: 1F0 3F0 3B0 3REDUCE_GRAD 1B0 1REDUCE_GRAD 1F1 3F1 3B1 1B1 1REDUCE_GRAD 3REDUCE_GRAD
                        """);
    }

    private static Schedule reduced(Schedule schedule, GradientReduction reduction) {
        return Lowering.lower(schedule, LoweringOptions.plain().withReduction(reduction));
    }

    @Test
    void microBatchesInSlicesAreSummedWithTheirLastSlice() {
        Schedule schedule =
                ScheduleText.parse(
                        """
                        ranks: 1
                        micro-batches: 2
                        slices: 2
                        rank 0: 0F0s0 0F0s1 0B0s1 0F1s0 0F1s1 0B1s1 0B0s0 0B1s0
                        """);

        assertThat(programs(reduced(schedule, GradientReduction.PER_MICRO_BATCH)))
                .isEqualTo(
                        "rank 0: 0F0s0 0F0s1 0B0s1 0F1s0 0F1s1 0B1s1 0B0s0 0REDUCE_GRAD 0B1s0"
                                + " 0REDUCE_GRAD\n");
    }

    @Test
    void allThatARunNeedsIsInsertedInItsOrder() {
        var options =
                LoweringOptions.plain()
                        .withSharedGroups(List.of(List.of(0, 2)))
                        .withGathers(new GatherSettings(ParameterResidency.PER_STEP, 0))
                        .withReduction(GradientReduction.PER_STEP);

        Schedule lowered =
                Lowering.lower(OneForwardOneBackward.schedule(PipelineShape.of(3, 1)), options);

        assertThat(programs(lowered))
                .isEqualTo(
                        """
                        rank 0: 0UNSHARD 0F0 0SEND_F0 0RECV_B0 0B0 0RESHARD 0REDUCE_GRAD
                        rank 1: 1UNSHARD 1RECV_F0 1F0 1SEND_F0 1RECV_B0 1B0 1SEND_B0 1RESHARD 1REDUCE_GRAD
                        rank 2: 2UNSHARD 2RECV_F0 2F0 2B0 2SEND_B0 2RESHARD 2REDUCE_GRAD
                        """);
        ScheduleValidator.validate(lowered).orThrow();
        assertThat(Lowering.lower(lowered, options)).isEqualTo(lowered);
        assertThat(programs(Lowering.lowerForwardOnly(lowered, options)))
                .isEqualTo(
                        """
                        rank 0: 0UNSHARD 0F0 0SEND_F0 0RESHARD
                        rank 1: 1UNSHARD 1RECV_F0 1F0 1SEND_F0 1RESHARD
                        rank 2: 2UNSHARD 2RECV_F0 2F0 2RESHARD
                        """);
    }

    @Test
    void anyOrderCanRunWithReplicasAndKeepsWhatItHas() {
        for (GradientReduction reduction :
                List.of(GradientReduction.PER_STEP, GradientReduction.PER_MICRO_BATCH)) {
            RandomOrders.some(50)
                    .forEach(
                            order -> {
                                int lastStage = order.shape().stages() - 1;
                                var options =
                                        LoweringOptions.plain()
                                                .withReduction(reduction)
                                                .withSharedGroups(List.of(List.of(0, lastStage)))
                                                .withGathers(
                                                        new GatherSettings(
                                                                ParameterResidency.PER_PASS, 1))
                                                .withCapacity(1);
                                Schedule lowered = Lowering.lower(order, options);

                                runsWith(InFlight.uniform(1), lowered);
                                assertThat(Lowering.lower(lowered, options)).isEqualTo(lowered);
                                assertThat(reductions(lowered))
                                        .isEqualTo(expectedReductions(lowered, reduction));
                            });
        }
    }

    private static long reductions(Schedule schedule) {
        return schedule.programs().stream()
                .flatMap(program -> program.ops().stream())
                .filter(op -> op instanceof Op.ReduceGradients)
                .count();
    }

    private static long expectedReductions(Schedule schedule, GradientReduction reduction) {
        int times =
                reduction == GradientReduction.PER_MICRO_BATCH
                        ? schedule.shape().microBatches()
                        : 1;
        return (long) times * schedule.shape().stages();
    }
}
