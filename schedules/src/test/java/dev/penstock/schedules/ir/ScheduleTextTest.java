package dev.penstock.schedules.ir;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.penstock.schedules.RandomOrders;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.lower.Lowering;
import java.util.List;
import org.junit.jupiter.api.Test;

class ScheduleTextTest {
    @Test
    void aFileWrittenByHandIsRead() {
        Schedule schedule =
                ScheduleText.parse(
                        """
                        # two ranks, three micro-batches
                        schedule: my own order   # with a name
                        ranks: 2
                        micro-batches: 3

                        rank 1: 1F0 1B0 1F1 1B1 1F2 1B2
                        rank 0: 0F0 0F1 0B0      # warm-up
                                0F2, 0B1,0B2
                        """);

        assertThat(schedule.name()).isEqualTo("my own order");
        assertThat(schedule.shape()).isEqualTo(PipelineShape.of(2, 3));
        assertThat(schedule.placement()).isEqualTo(Placement.loop(2, 1));
        assertThat(schedule.program(0).ops())
                .extracting(op -> OpText.print(op, false))
                .containsExactly("0F0", "0F1", "0B0", "0F2", "0B1", "0B2");
        assertThat(schedule.program(1).ops()).hasSize(6);
    }

    @Test
    void everythingInTheHeaderIsRead() {
        Schedule schedule =
                ScheduleText.parse(
                        """
                        ranks: 2
                        chunks: 2
                        placement: 0 1 1 0
                        micro-batches: 1
                        slice-lengths: 128, 64
                        shared: 0 3
                        rank 0: 0F0s0
                        rank 1:
                        """);

        assertThat(schedule.name()).isEqualTo("custom");
        assertThat(schedule.shape()).isEqualTo(new PipelineShape(2, 2, 1, List.of(128, 64)));
        assertThat(schedule.placement()).isEqualTo(new Placement(List.of(0, 1, 1, 0)));
        assertThat(schedule.sharedGroups()).containsExactly(List.of(0, 3));
        assertThat(schedule.program(0).ops())
                .containsExactly(new Op.Forward(new WorkUnit(0, 0, 0)));
        assertThat(schedule.program(1).ops()).isEmpty();
    }

    @Test
    void aScheduleIsPrintedForPeople() {
        String text =
                """
                schedule: tiny
                ranks: 2
                chunks: 1
                placement: loop
                micro-batches: 1
                slice-lengths: 2 1
                shared: 0 1

                rank 0: 0F0s0 0SEND_F0s0 0REDUCE_GRAD
                rank 1: 1RECV_F0s0 1F0s0 1REDUCE_GRAD
                """;

        assertThat(ScheduleText.print(ScheduleText.parse(text))).isEqualTo(text);
    }

    @Test
    void anyOrderOnAnyPlacementReadsBack() {
        RandomOrders.some(200)
                .map(
                        order ->
                                Lowering.lower(
                                        order, List.of(List.of(0, order.shape().stages() - 1))))
                .forEach(
                        lowered ->
                                assertThat(ScheduleText.parse(ScheduleText.print(lowered)))
                                        .isEqualTo(lowered));
    }

    @Test
    void opsAreFoundInTheirFile() {
        ParsedSchedule parsed =
                ScheduleText.read(
                        """
                        ranks: 1
                        micro-batches: 2
                        rank 0: 0F0
                          0B0, 0F1
                        """);

        assertThat(parsed.positions().getFirst())
                .containsExactly(
                        new TextPosition(3, 9),
                        new TextPosition(4, 3),
                        new TextPosition(4, 8),
                        new TextPosition(4, 11));
        var missing = new OpPlace(0, 3, new Op.Backward(new WorkUnit(0, 1, 0)));
        assertThat(parsed.positionOf(missing)).isEqualTo(new TextPosition(4, 11));
    }

    @Test
    void allProblemsAreNamedAtOnceWithLineAndColumn() {
        assertThat(
                        problems(
                                """
                                what is this
                                schedule:
                                ranks: two
                                chunks: 1 2
                                colour: red
                                slices: 3
                                slice-lengths: 4 0
                                rank 0: 0F0 0X1
                                rank 0: 0F1
                                rank one: 1F0
                                """))
                .containsExactly(
                        "line 1, column 1: expected 'key: value' or 'rank N: ops', got 'what is this'",
                        "line 2, column 1: 'schedule' needs a name",
                        "line 3, column 8: 'ranks' holds whole numbers from 1 on, got 'two'",
                        "line 4, column 1: 'chunks' is one number, got '1 2'",
                        "line 5, column 1: unknown key 'colour', expected one of schedule, ranks, chunks,"
                                + " placement, micro-batches, slices, slice-lengths, shared, peers, absent or 'rank N'",
                        "line 6, column 1: 'slices: 3' does not fit the 2 slice-lengths",
                        "line 7, column 18: 'slice-lengths' holds whole numbers from 1 on, got '0'",
                        "line 8, column 13: expected an op such as 0F0, 0B0, 0I0, 0W0, 0R0, 0SEND_F0, 1RECV_F0, 1SEND_B0,"
                                + " 0RECV_B0, (0F1;3B0)OVERLAP_F_B, 0UNSHARD, 0RESHARD or 0REDUCE_GRAD, got '0X1'",
                        "line 9, column 1: rank 0 is given twice; a line without a colon goes on with"
                                + " the rank before",
                        "line 10, column 1: expected 'rank N:' with a number, got 'rank one:'",
                        "line 10, column 1: 'micro-batches: N' is missing");
    }

    @Test
    void whatDoesNotFitTheShapeIsNamed() {
        assertThat(
                        problems(
                                """
                                ranks: 3
                                ranks: 4
                                micro-batches: 1
                                slices: 2
                                placement: 0 1 3
                                shared: 0
                                shared: 0 5
                                rank 0: 0F0
                                rank 7: 1F0s0
                                """))
                .containsExactly(
                        "line 2, column 1: 'ranks' is given twice",
                        "line 5, column 16: ranks are 0 to 2, got 3",
                        "line 6, column 1: 'shared' names two stages or more",
                        "line 7, column 9: stage 0 is shared twice",
                        "line 7, column 11: stages are 0 to 2, got 5",
                        "line 8, column 9: 0F0 needs its slice: 0F0s0 to 0F0s1",
                        "line 9, column 1: ranks are 0 to 2, got rank 7",
                        "line 9, column 1: 'rank 1: ops' is missing (2 of 3 ranks are)");
    }

    @Test
    void aPlacementNamesARankForEveryStage() {
        assertThat(problems("ranks: 2\nmicro-batches: 1\nplacement: 0\nrank 0:\nrank 1:\n"))
                .containsExactly(
                        "line 3, column 1: 'placement' is 'loop', 'v' (of 2 chunks) or the rank of each of the 2 stages, got '0'");
        assertThat(problems("ranks: 2\nmicro-batches: 1\nplacement: v\nrank 0:\nrank 1:\n"))
                .containsExactly(
                        "line 3, column 1: 'placement' is 'loop', 'v' (of 2 chunks) or the rank of each of the 2 stages, got 'v'");
    }

    @Test
    void vPlacementHasAWord() {
        String header = "schedule: zb-v\nranks: 3\nchunks: 2\nplacement: v\n";
        Schedule schedule = Generators.generate("zb-v", new PipelineShape(3, 2, 6, List.of(1)));

        String text = ScheduleText.print(schedule);

        assertThat(text).startsWith(header);
        assertThat(ScheduleText.parse(text)).isEqualTo(schedule);
        assertThat(ScheduleText.parse(text.replace("placement: v", "placement: 0 1 2 2 1 0")))
                .isEqualTo(schedule);
    }

    @Test
    void sizesBeyondReasonAreRefusedAndNotTried() {
        assertThat(problems("ranks: 999999999\nmicro-batches: 999999999\nslices: 999999999\n"))
                .singleElement()
                .asString()
                .contains("more than 67108864 units");
        assertThat(problems("ranks: 9999999999\nmicro-batches: 1\n"))
                .containsExactly(
                        "line 1, column 8: 'ranks' holds whole numbers from 1 on, got '9999999999'");
    }

    @Test
    void anEmptyTextSaysWhatIsMissing() {
        assertThat(problems(""))
                .containsExactly(
                        "line 1, column 1: 'ranks: N' is missing",
                        "line 1, column 1: 'micro-batches: N' is missing");
    }

    private static List<String> problems(String text) {
        var thrown =
                catchThrowableOfType(ScheduleTextException.class, () -> ScheduleText.parse(text));
        return thrown.problems().stream().map(TextProblem::toString).toList();
    }
}
