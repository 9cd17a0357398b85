package dev.penstock.schedules.generate.vshaped;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.schedules.NaiveJudge;
import dev.penstock.schedules.NaiveSimulator;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.simulate.Timeline;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.ScheduleValidator;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Properties of the kinds in V placement beyond those that the grid of all kinds checks. */
class VPlacementTest {
    /** No two kinds of op, ranks or micro-batches cost the same. */
    private record DifferentCosts() implements CostModel {
        @Override
        public long nanos(int rank, int position, Op op) {
            return switch (op) {
                case Op.Forward(var unit) -> 20 + 3L * unit.stage() + unit.microBatch() % 2;
                case Op.Backward(var unit) -> 50 + 5L * unit.stage() + unit.microBatch() % 3;
                case Op.BackwardInput(var unit) -> 29 + 2L * unit.stage();
                case Op.BackwardWeight(var unit) -> 17 + unit.stage();
                case Op.Overlapped pair -> 61 + 7L * pair.stage();
                case Op.Transfer _ -> 1 + rank;
                case Op.ReduceGradients _ -> 11;
                default -> throw new IllegalArgumentException("no generator makes " + op);
            };
        }

        @Override
        public long latencyNanos(Channel channel) {
            return 2L * channel.toStage() + channel.fromStage();
        }
    }

    /** With an embedding that the first and the last stage share, which are both on rank 0. */
    private static Schedule lowered(Schedule schedule) {
        return Lowering.lower(schedule, List.of(List.of(0, schedule.shape().stages() - 1)));
    }

    @Test
    void sendsNothingWhereTheModelTurnsRound() {
        for (Schedule schedule : VSchedules.upTo(6, 10)) {
            int ranks = schedule.shape().ranks();
            for (RankProgram program : Lowering.lower(schedule).programs()) {
                assertThat(program.ops())
                        .noneMatch(
                                op ->
                                        (op instanceof Op.SendActivation && op.stage() == ranks - 1)
                                                || (op instanceof Op.ReceiveActivation
                                                        && op.stage() == ranks)
                                                || (op instanceof Op.SendGradient
                                                        && op.stage() == ranks)
                                                || (op instanceof Op.ReceiveGradient
                                                        && op.stage() == ranks - 1));
            }
        }
    }

    @Test
    void takesAsLongForTheNaiveSimulatorWhenEverythingCostsSomethingElse() {
        var costs = new DifferentCosts();
        for (Schedule schedule : VSchedules.upTo(4, 8)) {
            for (Schedule program : List.of(schedule, lowered(schedule))) {
                Timeline fast = ScheduleSimulator.simulate(program, costs, InFlight.uniform(2));
                var slow = new NaiveSimulator(program, costs, InFlight.uniform(2));

                assertThat(slow.finished()).isTrue();
                for (int rank = 0; rank < schedule.shape().ranks(); rank++) {
                    int at = rank;
                    assertThat(
                                    IntStream.range(0, fast.opsRun(at))
                                            .mapToObj(i -> fast.endNanos(at, i)))
                            .as("%s, rank %d", schedule.name(), rank)
                            .isEqualTo(slow.ends().get(rank));
                }
            }
        }
    }

    @Test
    void isJudgedAsTheNaiveJudgeDoesWhenTwoNeighboursChangePlaces() {
        int illegal = 0;
        int legal = 0;
        for (Schedule schedule : VSchedules.upTo(3, 6)) {
            Schedule lowered = lowered(schedule);
            for (int seed = 0; seed < 8; seed++) {
                Schedule changed = withNeighboursSwapped(lowered, seed);
                boolean expected =
                        NaiveJudge.isLegal(changed, PassKind.TRAINING, InFlight.uniform(1));

                assertThat(
                                ScheduleValidator.validate(
                                                changed,
                                                Conditions.training().with(InFlight.uniform(1)))
                                        .isValid())
                        .as("%s with %d", schedule.name(), seed)
                        .isEqualTo(expected);
                illegal += expected ? 0 : 1;
                legal += expected ? 1 : 0;
            }
        }
        assertThat(illegal).isPositive();
        assertThat(legal).isPositive();
    }

    private static Schedule withNeighboursSwapped(Schedule schedule, int seed) {
        var random = new Random(seed);
        int rank = random.nextInt(schedule.shape().ranks());
        var ops = new ArrayList<>(schedule.program(rank).ops());
        int at = random.nextInt(ops.size() - 1);
        Collections.swap(ops, at, at + 1);
        var programs = new ArrayList<>(schedule.programs());
        programs.set(rank, new RankProgram(rank, ops));
        return schedule.withPrograms(programs);
    }

    @Test
    void twoChunksOfWholeSequencesAreAskedFor() {
        for (String kind : VSchedules.KINDS) {
            assertThatThrownBy(() -> Generators.generate(kind, PipelineShape.of(2, 8)))
                    .hasMessage(kind + " runs 2 stages per rank, got 1 chunk; try 2");
            assertThatThrownBy(
                            () ->
                                    Generators.generate(
                                            kind, new PipelineShape(2, 2, 8, List.of(1, 1, 1))))
                    .hasMessage(
                            kind + " runs whole sequences, got 3 slices; try 1 slice, or seq1f1b");
        }
    }

    @Test
    void dualPipeVSaysHowManyMicroBatchesWouldDo() {
        assertThatThrownBy(() -> DualPipeV.schedule(VSchedules.shape(4, 7)))
                .hasMessage(
                        "dualpipe-v on 4 ranks needs at least 8 micro-batches, got 7; try 8 or more, or zb-v");
    }
}
