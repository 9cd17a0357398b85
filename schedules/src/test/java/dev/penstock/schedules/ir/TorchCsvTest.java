package dev.penstock.schedules.ir;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.penstock.schedules.RandomOrders;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.validate.ScheduleValidator;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class TorchCsvTest {
    static String resource(String name) {
        try (InputStream file = TorchCsvTest.class.getResourceAsStream("/torch/" + name)) {
            return new String(file.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Test
    void aFileOfComputationsWithIdleStepsIsReadAndCanRun() {
        Schedule schedule =
                TorchCsv.read(
                                resource("zero_bubble_2rank_2stage_compute.csv")
                                        .replace("\n", "\r\n"))
                        .schedule();

        assertThat(schedule.shape()).isEqualTo(new PipelineShape(2, 2, 3, List.of(1)));
        assertThat(schedule.placement()).isEqualTo(Placement.loop(2, 2));
        assertThat(schedule.program(1).ops().getFirst())
                .isEqualTo(new Op.Forward(new WorkUnit(1, 0, 0)));
        assertThat(schedule.isComputeOnly()).isTrue();
        ScheduleValidator.validate(Lowering.lower(schedule)).orThrow();
    }

    @Test
    void overlappedPairsOnAVAreReadAndCanRun() {
        Schedule schedule = TorchCsv.read(resource("overlapped_2rank_v_compute.csv")).schedule();

        assertThat(schedule.placement()).isEqualTo(new Placement(List.of(0, 1, 1, 0)));
        assertThat(schedule.program(0).ops())
                .contains(
                        new Op.Overlapped(
                                new Op.Forward(new WorkUnit(0, 2, 0)),
                                new Op.Backward(new WorkUnit(3, 1, 0))));
        ScheduleValidator.validate(Lowering.lower(schedule)).orThrow();
    }

    @Test
    void aFileWithCommunicationIsReadAndCanRunAsItIs() {
        String file = resource("one_f_one_b_2rank_comms.csv");

        Schedule schedule = TorchCsv.read(file).schedule();

        assertThat(schedule.hasTransfers()).isTrue();
        assertThat(schedule.program(1).ops())
                .startsWith(
                        new Op.GatherParameters(1, LayerRange.ALL),
                        new Op.ReceiveActivation(new WorkUnit(1, 0, 0)))
                .endsWith(new Op.ReduceGradients(1));
        ScheduleValidator.validate(schedule).orThrow();
        assertThat(TorchCsv.print(schedule)).isEqualTo(file);
    }

    @Test
    void padsToTheStepsOfALockStep() {
        Schedule schedule = Generators.generate("1f1b", PipelineShape.of(3, 3));

        assertThat(TorchCsv.print(schedule))
                .isEqualTo(
                        """
                        0F0,0F1,0F2,0B0,0B1,0B2
                        1F0,1F1,1B0,1F2,1B1,1B2
                        2F0,2B0,2F1,2B1,2F2,2B2
                        """);
        assertThat(TorchCsv.printPadded(schedule))
                .isEqualTo(
                        """
                        0F0,0F1,0F2,,,0B0,,0B1,,0B2
                        ,1F0,1F1,,1B0,1F2,1B1,,1B2,
                        ,,2F0,2B0,2F1,2B1,2F2,2B2,,
                        """);
    }

    @Test
    void padsOneAndTheSameWhetherStepsAreReceivesOrNot() {
        Schedule lowered = Lowering.lower(Generators.generate("1f1b", PipelineShape.of(2, 1)));

        assertThat(TorchCsv.printPadded(lowered))
                .isEqualTo(
                        """
                        0F0,0SEND_F0,,,,,0RECV_B0,0B0
                        ,,1RECV_F0,1F0,1B0,1SEND_B0,,
                        """);
    }

    @Test
    void padsAnOrderThatCannotRunAsFarAsItGets() {
        Schedule stuck = TorchCsv.read("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n").schedule();

        assertThat(TorchCsv.printPadded(stuck)).isEqualTo("0F0,,0B0,0F1,0B1\n,1F0,1F1,1B0,1B1\n");
    }

    @Test
    void anyOrderReadsBackPaddedOrNotLoweredOrNot() {
        Stream.concat(RandomOrders.some(200), RandomOrders.paired(100))
                .map(TorchCsvTest::sayable)
                .forEach(
                        order -> {
                            readsBack(order);
                            readsBack(Lowering.lower(order));
                        });
    }

    private static void readsBack(Schedule schedule) {
        assertThat(TorchCsv.read(TorchCsv.print(schedule)).schedule()).isEqualTo(schedule);
        assertThat(TorchCsv.read(TorchCsv.printPadded(schedule)).schedule()).isEqualTo(schedule);
    }

    @Test
    void inAColumnNothingNeedsWhatAnotherRankMakesThere() {
        RandomOrders.paired(100)
                .map(TorchCsvTest::sayable)
                .forEach(
                        order -> {
                            Map<Op, Integer> columns = columns(TorchCsv.printPadded(order));
                            columns.forEach(
                                    (op, column) -> {
                                        for (Op maker : makers(order, op)) {
                                            assertThat(columns.getOrDefault(maker, -1))
                                                    .isLessThan(column);
                                        }
                                    });
                        });
    }

    private static Map<Op, Integer> columns(String csv) {
        Map<Op, Integer> columns = new HashMap<>();
        for (String line : csv.lines().toList()) {
            String[] cells = line.split(",", -1);
            for (int i = 0; i < cells.length; i++) {
                int column = i;
                OpText.parse(cells[i])
                        .ifPresent(
                                op -> op.computations().forEach(part -> columns.put(part, column)));
            }
        }
        return columns;
    }

    private static List<Op> makers(Schedule order, Op op) {
        int stage = op.stage();
        WorkUnit unit = ((Op.UnitOp) op).unit();
        if (op instanceof Op.Forward && order.placement().crossesBefore(stage)) {
            return List.of(new Op.Forward(unit.onStage(stage - 1)));
        }
        if (op instanceof Op.InputGradient && order.placement().crossesAfter(stage)) {
            return List.of(
                    new Op.Backward(unit.onStage(stage + 1)),
                    new Op.BackwardInput(unit.onStage(stage + 1)));
        }
        return List.of();
    }

    /** Without what the format cannot express. */
    private static Schedule sayable(Schedule schedule) {
        List<RankProgram> programs =
                schedule.programs().stream()
                        .map(
                                program ->
                                        new RankProgram(
                                                program.rank(),
                                                program.ops().stream()
                                                        .flatMap(TorchCsvTest::sayable)
                                                        .toList()))
                        .toList();
        return new Schedule("custom", schedule.shape(), schedule.placement(), programs);
    }

    /** Halves of a pair that the format has no action for run one after the other. */
    private static Stream<Op> sayable(Op op) {
        if (TorchCsv.canSay(op)) {
            return Stream.of(op);
        }
        return op instanceof Op.Overlapped
                ? op.computations().stream().map(half -> half)
                : Stream.empty();
    }

    @Test
    void whatTheFormatCannotSayIsNamedAndNotDropped() {
        Schedule schedule =
                ScheduleText.parse(
                        "ranks: 1\nmicro-batches: 1\nrank 0: 0UNSHARD[0-3] 0F0 0R0 0B0 0RESHARD[0-3]\n");

        assertThatThrownBy(() -> TorchCsv.print(schedule))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(
                        "torch-csv has no actions for recompute, offload, reload, layer ranges and pairs without a backward, got 0UNSHARD[0-3], 0R0,"
                                + " 0RESHARD[0-3]; use the text format");
        var many = new ArrayList<Op>();
        for (int i = 0; i < 7; i++) {
            many.add(new Op.Recompute(new WorkUnit(0, i, 0)));
        }
        assertThatThrownBy(
                        () ->
                                TorchCsv.print(
                                        schedule.withPrograms(List.of(new RankProgram(0, many)))))
                .hasMessageContaining("0R0, 0R1, 0R2, 0R3, 0R4 and 2 more;");
        assertThatThrownBy(
                        () ->
                                TorchCsv.print(
                                        schedule.withPrograms(
                                                List.of(new RankProgram(0, List.of())))))
                .hasMessageContaining("rank 0 without ops");
    }

    @Test
    void opsAreFoundInTheirFile() {
        ParsedSchedule parsed = TorchCsv.read("0F0,,0B0\n , 1F0,1B0\n\n");

        assertThat(parsed.positions())
                .containsExactly(
                        List.of(
                                new TextPosition(1, 1),
                                new TextPosition(1, 6),
                                new TextPosition(1, 9)),
                        List.of(
                                new TextPosition(2, 4),
                                new TextPosition(2, 8),
                                new TextPosition(2, 11)));
    }

    @Test
    void whatTheJudgeObjectsToHasItsLineAndColumn() {
        // a wrong receiving stage, a missing receive, a micro-batch that nobody computes
        ParsedSchedule parsed =
                TorchCsv.read(
                        """
                        0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1
                        0RECV_F0,1F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1SEND_B7
                        """);

        assertThat(ScheduleValidator.validate(parsed.schedule()).violations())
                .extracting(v -> parsed.positionOf(v.place()) + " " + v.message())
                .containsExactly(
                        "TextPosition[line=2, column=1] rank 1, op 0: 0RECV_F0 has no partner:"
                                + " that neighbour is on the same rank, or is none; a receive carries the number of the stage that receives",
                        "TextPosition[line=2, column=44] rank 1, op 7: 1SEND_B7 does not exist: stages are 0 to 1,"
                                + " micro-batches 0 to 1, slices 0 to 0",
                        "TextPosition[line=2, column=52] rank 1 has no 1RECV_F0",
                        "TextPosition[line=2, column=52] rank 1 has no 1RECV_F1");
    }

    @Test
    void allProblemsAreNamedAtOnceWithLineAndColumn() {
        assertThat(
                        problems(
                                """
                                0F0,0X0,0R0,0F7,0B0, 2BW0
                                1F0,1B0,0F0,,,
                                4F0,0RESHARD[0-1],-1F0,0B0
                                """))
                .containsExactly(
                        "line 1, column 5: expected an action such as 0F0, 0B0, 0I0, 0W0, 0SEND_F0, 1RECV_F0,"
                                + " 1SEND_B0, 0RECV_B0, (0F1;3B0)OVERLAP_F_B, 0UNSHARD, 0RESHARD or 0REDUCE_GRAD,"
                                + " got '0X0'",
                        "line 1, column 9: 0R0 is an op of the text format alone, not of torch-csv",
                        "line 1, column 13: micro-batch 7 leaves a gap: nobody computes micro-batches 1 to 6",
                        "line 1, column 22: expected an action such as 0F0, 0B0, 0I0, 0W0, 0SEND_F0, 1RECV_F0,"
                                + " 1SEND_B0, 0RECV_B0, (0F1;3B0)OVERLAP_F_B, 0UNSHARD, 0RESHARD or 0REDUCE_GRAD,"
                                + " got '2BW0'; files from before I and W were named: write B for BW, and I for B",
                        "line 2, column 9: stage 0 is computed on rank 0 (line 1, column 1) and here on rank 1",
                        "line 3, column 1: stage 4 leaves a gap: nobody computes stages 2 to 3",
                        "line 3, column 5: 0RESHARD[0-1] is an op of the text format alone, not of torch-csv",
                        "line 3, column 19: expected an action such as 0F0, 0B0, 0I0, 0W0, 0SEND_F0, 1RECV_F0,"
                                + " 1SEND_B0, 0RECV_B0, (0F1;3B0)OVERLAP_F_B, 0UNSHARD, 0RESHARD or 0REDUCE_GRAD,"
                                + " got '-1F0'",
                        "line 3, column 24: stage 0 is computed on rank 0 (line 1, column 1) and here on rank 2",
                        "line 3, column 27: lines padded with idle steps have as many cells as the longest, 6, got 4");
    }

    @Test
    void linesMayEndEarlyUnlessTheyArePadded() {
        assertThat(TorchCsv.read("0F0,,,0B0\n,1F0,1B0\n").schedule().shape())
                .isEqualTo(PipelineShape.of(2, 1));
        assertThat(problems("0F0,,,0B0\n,1F0,1B0,,\n"))
                .containsExactly(
                        "line 1, column 10: lines padded with idle steps have as many cells as the longest, 5, got 4");
    }

    @Test
    void whereSequencesAreCutEveryOpNamesItsSlice() {
        assertThat(problems("0F0s0,0F0,(0F1;0B0)OVERLAP_F_B,0B0s2,0REDUCE_GRAD\n"))
                .containsExactly(
                        "line 1, column 7: 0F0 names no slice, but others do",
                        "line 1, column 11: (0F1;0B0)OVERLAP_F_B names no slice, but others do",
                        "line 1, column 32: slice 2 leaves a gap: nobody computes slice 1");
        assertThat(TorchCsv.read("0F0s0,0B0\n").schedule().shape())
                .isEqualTo(PipelineShape.of(1, 1));
    }

    @Test
    void everyRankHasAsManyStages() {
        assertThat(problems("0F0,0B0,2F0,2B0\n1F0,1B0\n"))
                .containsExactly(
                        "line 2, column 1: every rank has as many stages, got 3 stages on 2 ranks (lines)");
    }

    @Test
    void ofAFileInDoubtAboutItsShapeTheJudgeSeesWhatIsSure() {
        // a micro-batch that does not exist, a stage on two ranks, and a missing receive
        ScheduleTextException thrown =
                thrown(
                        """
                        0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0F7
                        1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1,0B1
                        """);

        assertThat(thrown.problems())
                .extracting(TextProblem::toString)
                .containsExactly(
                        "line 1, column 53: micro-batch 7 leaves a gap: nobody computes micro-batches 2 to 6",
                        "line 2, column 44: stage 0 is computed on rank 0 (line 1, column 1) and here on rank 1");
        ParsedSchedule draft = thrown.draft().orElseThrow();
        assertThat(draft.schedule().shape()).isEqualTo(PipelineShape.of(2, 2));
        assertThat(ScheduleValidator.validate(draft.schedule()).violations())
                .extracting(v -> draft.positionOf(v.place()).column() + " " + v.message())
                .containsExactly(
                        "53 rank 0, op 8: 0F7 does not exist: stages are 0 to 1, micro-batches 0 to 1, slices 0 to 0",
                        "44 rank 1, op 7: 0B1 is of stage 0, which is placed on rank 0",
                        "47 rank 1 has no 1RECV_F0");
    }

    @Test
    void whereOpsCannotBeReadOrNoStageIsSureThereIsNoDraft() {
        assertThat(thrown("0F0,0X0,0B0,0F2\n").draft()).isEmpty();
        assertThat(thrown("1F0,1B0\n").draft()).isEmpty();
        assertThat(thrown("0F1,0B1\n").draft()).isEmpty();
        assertThat(thrown("").draft()).isEmpty();
    }

    @Test
    void aFileWithoutComputationsIsNone() {
        assertThat(problems(""))
                .containsExactly(
                        "line 1, column 1: expected a line of actions per rank, got no computation");
        assertThat(problems("0UNSHARD,0SEND_F0\n"))
                .containsExactly(
                        "line 1, column 1: expected a line of actions per rank, got no computation");
    }

    private static List<String> problems(String text) {
        return thrown(text).problems().stream().map(TextProblem::toString).toList();
    }

    private static ScheduleTextException thrown(String text) {
        return catchThrowableOfType(
                ScheduleTextException.class, () -> TorchCsv.read(text).schedule());
    }
}
