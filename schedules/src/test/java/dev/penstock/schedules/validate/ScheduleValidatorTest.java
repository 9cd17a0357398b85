package dev.penstock.schedules.validate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.simulate.InFlight;
import java.util.List;
import org.junit.jupiter.api.Test;

class ScheduleValidatorTest {
    private static List<String> messages(String text, Conditions conditions) {
        return ScheduleValidator.validate(ScheduleText.parse(text), conditions)
                .violations()
                .stream()
                .map(Violation::message)
                .toList();
    }

    @Test
    void microBatchesOutOfOrderButConsistentAreLegal() {
        assertThat(
                        messages(
                                """
                                ranks: 2
                                micro-batches: 3
                                rank 0: 0F2 0F0 0F1 0B0 0B1 0B2
                                rank 1: 1F0 1B0 1F2 1F1 1B1 1B2
                                """,
                                Conditions.training()))
                .isEmpty();
    }

    @Test
    void aCircularWaitOfComputationsIsShownAsItsCycle() {
        assertThat(
                        messages(
                                """
                                ranks: 3
                                micro-batches: 2
                                rank 0: 0F0 0B0 0F1 0B1
                                rank 1: 1F0 1F1 1B0 1B1
                                rank 2: 2F0 2B0 2F1 2B1
                                """,
                                Conditions.training()))
                .containsExactly(
                        "deadlock: rank 0 at 0B0 waits for 1B0 of rank 1, which at 1F1 waits for"
                                + " 0F1 of rank 0");
    }

    @Test
    void sendersThatWaitForEachOthersRoomAreADeadlock() {
        String bothSend =
                """
                ranks: 2
                micro-batches: 3
                rank 0: 0F0 0SEND_F0 0F1 0SEND_F1 0F2 0SEND_F2 0RECV_B0 0B0 0RECV_B1 0B1 0RECV_B2 0B2
                rank 1: 1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1 1RECV_F2 1F2 1B2 1SEND_B2
                """;

        assertThat(messages(bothSend, Conditions.training().with(InFlight.uniform(1)))).isEmpty();

        String withoutTurns =
                """
                ranks: 2
                micro-batches: 4
                rank 0: 0F0 0SEND_F0 0F1 0SEND_F1 0F2 0SEND_F2 0F3 0SEND_F3 0RECV_B0 0B0 0RECV_B1 0B1 0RECV_B2 0B2 0RECV_B3 0B3
                rank 1: 1RECV_F0 1F0 1RECV_F1 1F1 1B0 1SEND_B0 1B1 1SEND_B1 1RECV_F2 1F2 1RECV_F3 1F3 1B2 1SEND_B2 1B3 1SEND_B3
                """;

        assertThat(messages(withoutTurns, Conditions.training().with(InFlight.uniform(2))))
                .isEmpty();
        assertThat(messages(withoutTurns, Conditions.training().with(InFlight.uniform(1))))
                .containsExactly(
                        "deadlock: rank 0 at 0SEND_F3 waits for room that 1RECV_F2 makes of rank 1,"
                                + " which at 1SEND_B1 waits for room that 0RECV_B0 makes of rank 0");
    }

    @Test
    void framesAreMatchedByKeyAndNotByArrival() {
        String reordered =
                """
                ranks: 2
                micro-batches: 2
                rank 0: 0F0 0SEND_F0 0F1 0SEND_F1
                rank 1: 1RECV_F1 1RECV_F0 1F0 1F1
                """;

        assertThat(messages(reordered, Conditions.forwardOnly().with(InFlight.uniform(2))))
                .isEmpty();
        assertThat(messages(reordered, Conditions.forwardOnly().with(InFlight.uniform(1))))
                .containsExactly(
                        "deadlock: rank 0 at 0SEND_F1 waits for room that 1RECV_F1 makes of rank 1,"
                                + " which at 1RECV_F1 waits for 0SEND_F1 of rank 0");
    }

    @Test
    void allViolationsComeAtOnceInTheOrderOfTheSchedule() {
        assertThat(
                        messages(
                                """
                                ranks: 2
                                micro-batches: 2
                                slices: 2
                                rank 0: 0F0s1 0F0s0 0F1s0 0F1s1 0B0s0 0B0s1 0B1s1 0B1s0 1B1s0
                                rank 1: 1F0s0 1F0s0 1B0s1 1F0s1 1B0s0 1F1s0 1F1s1 1B1s1 1F7s0
                                """,
                                Conditions.training()))
                .containsExactly(
                        "rank 0, op 0: 0F0s1 comes before 0F0s0 (op 1); slices rise in the"
                                + " forwards",
                        "rank 0, op 4: 0B0s0 comes before 0B0s1 (op 5); slices fall in the"
                                + " backwards",
                        "rank 0, op 8: 1B1s0 is of stage 1, which is placed on rank 1",
                        "rank 1, op 1: 1F0s0 appears twice, first at op 0",
                        "rank 1, op 2: 1B0s1 comes before 1F0s1 (op 3), which it needs",
                        "rank 1, op 8: 1F7s0 does not exist: stages are 0 to 1, micro-batches 0 to"
                                + " 1, slices 0 to 1");
    }

    @Test
    void transfersMustMatchAndHaveAPurpose() {
        assertThat(
                        messages(
                                """
                                ranks: 2
                                chunks: 2
                                placement: 0 0 1 1
                                micro-batches: 1
                                rank 0: 0F0 0SEND_F0 1F0 1SEND_F0 1RECV_B0 1B0 0B0
                                rank 1: 2F0 2RECV_F0 3F0 3B0 2B0
                                """,
                                Conditions.training()))
                .containsExactly(
                        "rank 0, op 1: 0SEND_F0 has no partner: that neighbour is on the same rank,"
                                + " or is none",
                        "rank 1, op 0: 2F0 comes before 2RECV_F0 (op 1), which it needs",
                        "rank 1 has no 2SEND_B0");
    }

    @Test
    void theLastReductionComesAfterTheGradientsThatItSums() {
        assertThat(
                        messages(
                                """
                                ranks: 2
                                micro-batches: 1
                                shared: 0 1
                                rank 0: 0F0 0SEND_F0 0REDUCE_GRAD 0RECV_B0 0B0
                                rank 1: 1RECV_F0 1F0 1B0 1SEND_B0
                                """,
                                Conditions.training()))
                .containsExactly(
                        "rank 0, op 2: 0REDUCE_GRAD comes before 0B0 (op 4), whose gradients it"
                                + " sums",
                        "rank 1 has no 1REDUCE_GRAD");
        assertThat(
                        messages(
                                """
                                ranks: 1
                                micro-batches: 1
                                rank 0: 0F0 0REDUCE_GRAD 0I0 0REDUCE_GRAD 0W0
                                """,
                                Conditions.training()))
                .containsExactly(
                        "rank 0, op 3: 0REDUCE_GRAD comes before 0W0 (op 4), whose gradients it"
                                + " sums");
        assertThat(
                        messages(
                                """
                                ranks: 1
                                micro-batches: 1
                                rank 0: 0F0 0REDUCE_GRAD 0B0 0REDUCE_GRAD
                                """,
                                Conditions.training()))
                .isEmpty();
        assertThat(
                        messages(
                                """
                                ranks: 2
                                micro-batches: 2
                                shared: 0 1
                                rank 0: 0F0 0F1 0B0 0REDUCE_GRAD 0B1 0REDUCE_GRAD
                                rank 1: 1F0 1B0 1F1 1B1 1REDUCE_GRAD
                                """,
                                Conditions.training()))
                .isEmpty();
    }

    @Test
    void aBackwardIsWholeOrInTwoParts() {
        assertThat(
                        messages(
                                """
                                ranks: 1
                                micro-batches: 3
                                rank 0: 0F0 0F1 0F2 0I0 0B0 0W1 0I2 0W2
                                """,
                                Conditions.training()))
                .containsExactly(
                        "rank 0, op 3: 0I0 has a full backward beside it: one or the other",
                        "rank 0 has no 0I1");
    }

    @Test
    void aPairNeedsWhatBothHalvesNeed() {
        assertThat(
                        messages(
                                """
                                ranks: 1
                                micro-batches: 2
                                rank 0: 0F0 (0F1;0B1)OVERLAP_F_B 0B0 0F1
                                """,
                                Conditions.training()))
                .containsExactly(
                        "rank 0, op 1: (0F1;0B1)OVERLAP_F_B overlaps a backward with the forward"
                                + " that it needs",
                        "rank 0, op 3: 0F1 appears twice, first at op 1");
    }

    @Test
    void parametersAreThereWhenTheyAreUsed() {
        assertThat(
                        messages(
                                """
                                ranks: 1
                                chunks: 2
                                micro-batches: 1
                                rank 0: 0UNSHARD[0-1] 0F0 0UNSHARD[2-2] 1F0 1B0 0RESHARD 0B0 0RESHARD[1-2]
                                """,
                                Conditions.training()))
                .containsExactly(
                        "rank 0, op 1: 0F0 needs the parameters of stage 0, which are not gathered"
                                + " there",
                        "rank 0, op 6: 0B0 needs the parameters of stage 0, which are not gathered"
                                + " there",
                        "rank 0, op 7: 0RESHARD[1-2] releases what was not gathered");
    }

    @Test
    void anEvaluationHasForwardsAlone() {
        String training =
                """
                ranks: 1
                micro-batches: 1
                rank 0: 0F0 0B0
                """;

        assertThat(messages(training, Conditions.forwardOnly()))
                .containsExactly("rank 0, op 1: 0B0 has no place in a forward-only schedule");
        assertThat(messages(training.replace(" 0B0", ""), Conditions.training()))
                .containsExactly("rank 0 has no 0B0");
    }

    @Test
    void aLimitOnLiveUnitsIsHeldToAtTheOpThatFirstBreaksIt() {
        Schedule schedule = Generators.generate("1f1b", PipelineShape.of(3, 4));

        assertThat(
                        ScheduleValidator.validate(
                                        schedule, Conditions.training().withPeakUnitsLimit(3))
                                .isValid())
                .isTrue();
        assertThat(
                        ScheduleValidator.validate(
                                        schedule, Conditions.training().withPeakUnitsLimit(2))
                                .violations())
                .extracting(Violation::message)
                .containsExactly(
                        "rank 0 holds 3 units at 0F2 (op 2), more than the limit of 2: 3 of stage"
                                + " 0");
    }

    @Test
    void anInvalidScheduleIsThrownWithItsReport() {
        Schedule empty =
                ScheduleText.parse("schedule: nothing\nranks: 1\nmicro-batches: 30\nrank 0:\n");

        ValidationReport report = ScheduleValidator.validate(empty);

        assertThat(report.violations()).hasSize(60);
        assertThatThrownBy(report::orThrow)
                .isInstanceOf(InvalidScheduleException.class)
                .hasMessageStartingWith("nothing cannot run: 60 faults\n  rank 0 has no 0F0\n")
                .hasMessageEndingWith("... and 20 more")
                .extracting(thrown -> ((InvalidScheduleException) thrown).report())
                .isEqualTo(report);
    }

    @Test
    void aValidReportKnowsThePeaks() {
        Schedule lowered =
                Lowering.lower(Generators.generate("seq1f1b", PipelineShape.of(2, 3, 2)));

        ValidationReport report = ScheduleValidator.validate(lowered).orThrow();

        assertThat(report.describe()).isEqualTo("seq1f1b is valid");
        assertThat(report.memory().stages()).hasSize(2);
        assertThat(report.memory().peakUnits()).isEqualTo(3);
    }

    /** Otherwise there would be as many as its gathers name. */
    @Test
    void whoKnowsHowManyLayersAStageHasMissesThoseThatNobodyGathers() {
        String written =
                """
                ranks: 1
                chunks: 2
                micro-batches: 1
                rank 0: 0UNSHARD[0-0] 0F0 1UNSHARD[0-2] 1F0 1B0 0B0
                """;
        var twoLayersEach =
                new MemoryModel(
                        List.of(List.of(0L), List.of(0L)),
                        List.of(List.of(0L), List.of(0L)),
                        List.of(List.of(1L, 1L), List.of(1L, 1L)));

        assertThat(messages(written, Conditions.training())).isEmpty();
        assertThat(
                        messages(
                                written,
                                Conditions.training()
                                        .withMemoryLimit(
                                                MemoryLimit.uniform(twoLayersEach, 1, 100))))
                .containsExactly(
                        "rank 0, op 1: 0F0 needs the parameters of stage 0, which are not gathered"
                                + " there",
                        "rank 0, op 2: 1UNSHARD[0-2] gathers layers that are not there: the stage"
                                + " has 2",
                        "rank 0, op 3: 1F0 needs the parameters of stage 1, which are not gathered"
                                + " there",
                        "rank 0, op 4: 1B0 needs the parameters of stage 1, which are not gathered"
                                + " there",
                        "rank 0, op 5: 0B0 needs the parameters of stage 0, which are not gathered"
                                + " there");
    }

    @Test
    void gathersAndSumsWithoutTransfersLetTensorsTravelByThemselves() {
        String written =
                """
                ranks: 2
                micro-batches: 1
                rank 0: 0UNSHARD 0F0 0B0 0RESHARD 0REDUCE_GRAD
                rank 1: 1UNSHARD 1F0 1RESHARD 1B0
                """;

        assertThat(messages(written, Conditions.training()))
                .containsExactly(
                        "rank 1, op 3: 1B0 needs the parameters of stage 1, which are not gathered"
                                + " there");
    }

    @Test
    void stagesWithReplicasMustSumWithThem() {
        String lowered = "ranks: 1\nmicro-batches: 1\nrank 0: 0UNSHARD 0F0 0B0 0RESHARD\n";

        assertThat(messages(lowered, Conditions.training())).isEmpty();
        assertThat(messages(lowered, Conditions.training().withReplicas()))
                .containsExactly("rank 0 has no 0REDUCE_GRAD");
    }
}
