package dev.penstock.schedules.generate.wired;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.generate.wired.WiredOrder.Backwards;
import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.ir.ScheduleTextException;
import dev.penstock.schedules.ir.TorchCsv;
import dev.penstock.schedules.lower.GatherSettings;
import dev.penstock.schedules.lower.GradientReduction;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.lower.LoweringOptions;
import dev.penstock.schedules.lower.ParameterResidency;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.MemoryLimit;
import dev.penstock.schedules.validate.MemoryModel;
import dev.penstock.schedules.validate.ScheduleValidator;
import dev.penstock.schedules.validate.Violation;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.assertj.core.api.Assertions;
import org.junit.jupiter.api.Test;

/** What is wrong with a wired order is seen by the judge and by the readers. */
class WiredJudgeTest {
    private static final PipelineShape SHAPE = PipelineShape.of(2, 6).withPeers(3);
    private static final List<OpCosts> COSTS = Collections.nCopies(6, OpCosts.unit());

    /**
     * Rank 3 is absent.
     *
     * <pre>
     * rank 0: 0F0 0F1 0B0 0B1
     * rank 1: 1F0 1B0 1F2 1B2 1F1 1B1
     * rank 2: 0F2 0F3 0B2 0B3
     * rank 3:
     * rank 4: 0F4 0F5 0B4 0B5
     * rank 5: 1F4 1B4 1F3 1B3 1F5 1B5
     * </pre>
     */
    private static Schedule order() {
        Wirings wirings = Wirings.equal(SHAPE);
        return WiredOrder.schedule(
                SHAPE,
                wirings.without(wirings.straight(), 3),
                Backwards.FULL,
                COSTS,
                WiredOrder.usualCaps(SHAPE));
    }

    private static Schedule with(Schedule order, int rank, List<Op> ops) {
        var programs = new ArrayList<>(order.programs());
        programs.set(rank, new RankProgram(rank, ops));
        return order.withPrograms(programs);
    }

    private static List<Op> ops(Schedule order, int rank) {
        return new ArrayList<>(order.program(rank).ops());
    }

    private static Schedule moved(Schedule order, String op, int from, int to) {
        Op moved = OpText.parse(op).orElseThrow();
        List<Op> left = ops(order, from);
        assertThat(left.remove(moved)).isTrue();
        List<Op> right = ops(order, to);
        right.add(moved);
        return with(with(order, from, left), to, right);
    }

    private static List<String> messages(Schedule order) {
        return ScheduleValidator.validate(order).violations().stream()
                .map(Violation::message)
                .toList();
    }

    @Test
    void aBackwardBelongsWhereItsForwardWas() {
        assertThat(messages(moved(order(), "1B3", 5, 1)))
                .containsExactly("rank 1, op 6: 1B3 is of a micro-batch that is wired to rank 5");
    }

    @Test
    void anAbsentRankHasNothingToDo() {
        assertThat(messages(moved(moved(order(), "1F3", 5, 3), "1B3", 5, 3)))
                .containsExactly(
                        "rank 3, op 0: 1F3 is of a micro-batch that is wired to rank 5",
                        "rank 3, op 1: 1B3 is of a micro-batch that is wired to rank 5");
    }

    @Test
    void everyPresentRankSumsGradientsAndNoAbsentOneDoes() {
        Schedule lowered = Lowering.lower(order());
        List<Op> five = ops(lowered, 5);
        five.removeLast();

        assertThat(messages(with(lowered, 5, five))).containsExactly("rank 5 has no 1REDUCE_GRAD");
        assertThat(messages(with(lowered, 3, List.of(new Op.ReduceGradients(1)))))
                .containsExactly(
                        "rank 3, op 0: 1REDUCE_GRAD is of stage 1, which is held by ranks [1, 5]");
        assertThat(messages(with(lowered, 3, List.of(new Op.ReduceGradients(0)))))
                .containsExactly(
                        "rank 3, op 0: 0REDUCE_GRAD is of stage 0, which is held by ranks [0, 2, 4]");
    }

    @Test
    void aSumThatComesTooEarlyIsADeadlockOfItsPeers() {
        Schedule lowered = Lowering.lower(order());
        List<Op> two = ops(lowered, 2);
        two.remove(new Op.ReduceGradients(0));
        two.addFirst(new Op.ReduceGradients(0));
        // the others come to that sum after rank 1, which needs micro-batch 2 of rank 2 first
        List<Violation> violations = ScheduleValidator.validate(with(lowered, 2, two)).violations();

        assertThat(violations)
                .anySatisfy(v -> assertThat(v).isInstanceOf(Violation.OutOfOrder.class))
                .anySatisfy(
                        v ->
                                assertThat(v.message())
                                        .startsWith(
                                                "deadlock: rank 0 at 0RECV_B1 waits for 1SEND_B1 of rank 1"));
    }

    @Test
    void buffersAreCountedByPairOfRanks() {
        Schedule lowered = Lowering.lower(order());
        // rank 2 sends one micro-batch to peer 0 and one to peer 2
        assertThat(InFlight.auto(lowered).capacities())
                .containsEntry(new Channel(0, 1, 1, 0), 1)
                .containsEntry(new Channel(0, 1, 1, 2), 1)
                .doesNotContainKey(new Channel(0, 1, 0, 2));
        // with one buffer, rank 0 cannot be rid of two micro-batches that rank 1 takes backwards
        String text =
                ScheduleText.print(lowered)
                        .replace(
                                "rank 1: 1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F2 1F2 1B2 1SEND_B2 1RECV_F1 1F1",
                                "rank 1: 1RECV_F1 1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F2 1F2 1B2 1SEND_B2 1F1");
        Schedule backwards = ScheduleText.parse(text);
        Conditions tight = Conditions.training().with(InFlight.uniform(1));

        assertThat(ScheduleValidator.validate(lowered, tight).isValid()).isTrue();
        assertThat(ScheduleValidator.validate(backwards).isValid()).isTrue();
        assertThat(ScheduleValidator.validate(backwards, tight).violations())
                .singleElement()
                .satisfies(
                        deadlock ->
                                assertThat(deadlock.message())
                                        .isEqualTo(
                                                "deadlock: rank 0 at 0SEND_F1 waits for room that 1RECV_F1 makes of rank 1,"
                                                        + " which at 1RECV_F1 waits for 0SEND_F1 of rank 0"));
    }

    @Test
    void bytesAreCountedByRank() {
        MemoryModel model = MemoryModel.uniform(SHAPE, 100, 0, 0);
        // ranks of stage 0 hold two micro-batches, those of stage 1 one
        List<Long> enough = List.of(200L, 100L, 200L, 0L, 200L, 100L);
        List<Long> less = List.of(200L, 100L, 199L, 0L, 200L, 100L);

        assertThat(
                        ScheduleValidator.validate(
                                        order(),
                                        Conditions.training()
                                                .withMemoryLimit(new MemoryLimit(model, enough)))
                                .isValid())
                .isTrue();
        assertThat(
                        ScheduleValidator.validate(
                                        order(),
                                        Conditions.training()
                                                .withMemoryLimit(new MemoryLimit(model, less)))
                                .violations())
                .singleElement()
                .satisfies(
                        violation ->
                                assertThat(violation.message())
                                        .contains("rank 2 holds 200 B at 0F3"));
    }

    /** Valid for the judge is what can be run to its end by the definition. */
    @Test
    void theJudgeAgreesWithTheDefinitionOnOrdersWithTwoOpsSwapped() {
        var random = new Random(23);
        int valid = 0;
        for (int i = 0; i < 2000; i++) {
            Schedule order = order();
            int rank = List.of(0, 1, 2, 4, 5).get(random.nextInt(5));
            List<Op> ops = ops(order, rank);
            Collections.swap(ops, random.nextInt(ops.size()), random.nextInt(ops.size()));
            Schedule swapped = with(order, rank, ops);

            boolean runs = new WiredStarts(swapped, COSTS).makespan().isPresent();
            assertThat(ScheduleValidator.validate(swapped).isValid())
                    .as(ScheduleText.print(swapped))
                    .isEqualTo(runs);
            valid += runs ? 1 : 0;
        }
        assertThat(valid).isBetween(200, 1800);
    }

    @Test
    void aWiringIsReadFromForwardsAndTheRestIsOnAWrongRank() {
        String text = ScheduleText.print(moved(order(), "1B3", 5, 1));

        assertThat(messages(ScheduleText.parse(text)))
                .containsExactly("rank 1, op 6: 1B3 is of a micro-batch that is wired to rank 5");
    }

    @Test
    void aMissingMicroBatchIsMissingSomewhere() {
        String text = ScheduleText.print(order()).replace(" 1F3 1B3", "");

        assertThat(messages(ScheduleText.parse(text)))
                .containsExactly("rank 1 has no 1F3", "rank 1 has no 1B3");
    }

    @Test
    void headersThatMakeNoSenseAreNamed() {
        Assertions.assertThatThrownBy(
                        () ->
                                ScheduleText.parse(
                                        """
                                        ranks: 2
                                        absent: 1
                                        micro-batches: 1
                                        rank 0: 0F0 0B0
                                        rank 1: 1F0 1B0
                                        """))
                .isInstanceOf(ScheduleTextException.class)
                .hasMessageContaining("line 2, column 1: 'absent' ranks need 'peers: N'");
        Assertions.assertThatThrownBy(
                        () ->
                                ScheduleText.parse(
                                        """
                                        ranks: 4
                                        peers: 2
                                        absent: 1 3 7
                                        micro-batches: 1
                                        rank 0: 0F0 0B0
                                        rank 1:
                                        rank 2:
                                        rank 3:
                                        """))
                .hasMessageContaining("line 3, column 1: every rank that holds stage 1 is absent")
                .hasMessageContaining("line 3, column 13: ranks are 0 to 3, got 7");
        Assertions.assertThatThrownBy(
                        () -> ScheduleText.parse("ranks: 3\npeers: 2\nmicro-batches: 1\n"))
                .hasMessageContaining("every peer has as many ranks, got 3 ranks of 2 peers");
    }

    @Test
    void aSlipInAFileOfActionsIsNoWiring() {
        // the backward of micro-batch 1 on a rank that did not have its forward
        String slip = "0F0,0F1,0B0\n1F0,1B0,1F1,1B1\n0F2,0B2,0B1\n1F2,1B2\n";

        Assertions.assertThatThrownBy(() -> TorchCsv.read(slip))
                .hasMessageContaining(
                        "stage 0 is computed on rank 0 (line 1, column 1) and here on rank 2");
    }

    @Test
    void gathersAndSumsOfSingleMicroBatchesAreRefused() {
        Assertions.assertThatThrownBy(
                        () ->
                                Lowering.lower(
                                        order(),
                                        LoweringOptions.plain()
                                                .withReduction(GradientReduction.PER_MICRO_BATCH)))
                .hasMessageContaining("try per step");
        Assertions.assertThatThrownBy(
                        () ->
                                Lowering.lower(
                                        order(),
                                        LoweringOptions.plain()
                                                .withGathers(
                                                        new GatherSettings(
                                                                ParameterResidency.PER_PASS, 1))))
                .hasMessageContaining("keep whole parameters");
    }
}
