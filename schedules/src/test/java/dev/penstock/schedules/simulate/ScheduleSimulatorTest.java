package dev.penstock.schedules.simulate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.schedules.NaiveSimulator;
import dev.penstock.schedules.RandomOrders;
import dev.penstock.schedules.WildCosts;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.lower.Lowering;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;

class ScheduleSimulatorTest {
    private static final int ORDERS = 400;

    @Test
    void agreesWithANaiveSimulatorOnComputations() {
        for (int seed = 0; seed < ORDERS; seed++) {
            agree(RandomOrders.schedule(seed), new WildCosts(seed), InFlight.unbounded());
        }
    }

    @Test
    void agreesWithANaiveSimulatorOnTransfersWithFewCredits() {
        for (int seed = 0; seed < ORDERS; seed++) {
            Schedule order = RandomOrders.schedule(seed);
            Schedule lowered =
                    Lowering.lower(order, List.of(List.of(0, order.shape().stages() - 1)));
            agree(lowered, new WildCosts(seed), InFlight.uniform(1 + seed % 3));
        }
    }

    @Test
    void agreesWithANaiveSimulatorOnOverlappedPairs() {
        for (int seed = 0; seed < ORDERS; seed++) {
            Schedule pairs = RandomOrders.withPairs(RandomOrders.schedule(seed));
            agree(pairs, new WildCosts(seed), InFlight.unbounded());
            agree(Lowering.lower(pairs), new WildCosts(seed), InFlight.uniform(1 + seed % 3));
        }
    }

    @Test
    void agreesWithANaiveSimulatorOnGathersAndReductionsBesideComputations() {
        for (int seed = 0; seed < ORDERS; seed++) {
            Schedule order = RandomOrders.schedule(seed);
            agree(
                    RandomOrders.withParameterOps(order, seed),
                    new WildCosts(seed),
                    InFlight.unbounded());
            agree(
                    RandomOrders.withParameterOps(Lowering.lower(order), seed),
                    new WildCosts(seed),
                    InFlight.uniform(1 + seed % 3));
        }
    }

    @Test
    void agreesWithANaiveSimulatorOnHowFarABrokenScheduleGets() {
        int stuck = 0;
        for (int seed = 0; seed < ORDERS; seed++) {
            Schedule broken = shuffled(Lowering.lower(RandomOrders.schedule(seed)), seed);
            agree(broken, new WildCosts(seed), InFlight.uniform(1));
            stuck +=
                    ScheduleSimulator.run(broken, CostModel.unit(), InFlight.uniform(1)).finished()
                            ? 0
                            : 1;
        }
        assertThat(stuck).isBetween(ORDERS / 4, ORDERS);
    }

    private static Schedule shuffled(Schedule schedule, int seed) {
        var random = new Random(seed);
        var programs = new ArrayList<RankProgram>();
        for (var program : schedule.programs()) {
            var ops = new ArrayList<>(program.ops());
            int at = random.nextInt(ops.size());
            ops.add(random.nextInt(ops.size()), ops.remove(at));
            programs.add(new RankProgram(program.rank(), ops));
        }
        return schedule.withPrograms(programs);
    }

    private static void agree(Schedule schedule, CostModel costs, InFlight inFlight) {
        Timeline fast = ScheduleSimulator.run(schedule, costs, inFlight).timeline();
        var slow = new NaiveSimulator(schedule, costs, inFlight);

        for (int rank = 0; rank < schedule.shape().ranks(); rank++) {
            List<Long> starts = new ArrayList<>();
            List<Long> ends = new ArrayList<>();
            for (int i = 0; i < fast.opsRun(rank); i++) {
                starts.add(fast.startNanos(rank, i));
                ends.add(fast.endNanos(rank, i));
            }
            assertThat(starts)
                    .as(() -> ScheduleText.print(schedule))
                    .isEqualTo(slow.starts().get(rank));
            assertThat(ends).isEqualTo(slow.ends().get(rank));
        }
    }

    @Test
    void aSendWaitsForACreditAndAReceiveReturnsIt() {
        Schedule schedule =
                ScheduleText.parse(
                        """
                        ranks: 2
                        micro-batches: 2
                        rank 0: 0F0 0SEND_F0 0F1 0SEND_F1
                        rank 1: 1RECV_F0 1F0 1RECV_F1 1F1
                        """);
        CostModel costs =
                (_, _, op) ->
                        switch (op) {
                            case Op.Forward _ -> op.stage() == 0 ? 1 : 10;
                            case Op.ReceiveActivation _ -> 4;
                            case Op.InputGradient _,
                                    Op.BackwardWeight _,
                                    Op.Recompute _,
                                    Op.Overlapped _,
                                    Op.ActivationOp _,
                                    Op.ParameterOp _,
                                    Op.SendActivation _,
                                    Op.SendGradient _,
                                    Op.ReceiveGradient _,
                                    Op.ReduceGradients _ ->
                                    0;
                        };

        Timeline one = ScheduleSimulator.simulate(schedule, costs, InFlight.uniform(1));
        Timeline two = ScheduleSimulator.simulate(schedule, costs, InFlight.uniform(2));

        assertThat(one.startNanos(0, 3)).as("after the receive of the first, 1 + 4").isEqualTo(5);
        assertThat(two.startNanos(0, 3)).as("at once").isEqualTo(2);
    }

    @Test
    void aReductionEndsWhenAllMembersHaveReachedIt() {
        Schedule schedule =
                ScheduleText.parse(
                        """
                        ranks: 3
                        micro-batches: 1
                        shared: 0 2
                        rank 0: 0F0 0REDUCE_GRAD
                        rank 1: 1F0
                        rank 2: 2F0 2REDUCE_GRAD
                        """);

        Timeline timeline = ScheduleSimulator.simulate(schedule, CostModel.of(7, 1, 0));

        assertThat(timeline.startNanos(0, 1)).isEqualTo(21);
        assertThat(timeline.startNanos(2, 1)).isEqualTo(21);
    }

    @Test
    void refusesAScheduleThatGetsStuck() {
        Schedule reversed =
                ScheduleText.parse(
                        """
                        ranks: 2
                        micro-batches: 1
                        rank 0: 0B0 0F0
                        rank 1: 1F0 1B0
                        """);

        assertThatThrownBy(() -> ScheduleSimulator.simulate(reversed, CostModel.unit()))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("rank 0 at 0B0 waits for 1B0")
                .hasMessageContaining("2 ranks are stuck");
    }

    @Test
    void measuredComputationsAreReplayedWithoutTheirWaits() {
        Schedule schedule =
                ScheduleText.parse(
                        """
                        ranks: 2
                        micro-batches: 1
                        rank 0: 0F0 0SEND_F0
                        rank 1: 1RECV_F0 1F0
                        """);
        Timeline measured =
                Timeline.measured(
                        schedule,
                        new long[][] {{100, 120}, {100, 155}},
                        new long[][] {{110, 130}, {150, 170}});

        assertThat(measured.startNanos()).isEqualTo(100);
        assertThat(measured.makespanNanos()).isEqualTo(70);
        assertThat(measured.bubble().ranks().get(1).busyNanos()).isEqualTo(15);
        Timeline ideal =
                ScheduleSimulator.simulate(
                        schedule,
                        (rank, position, op) ->
                                op instanceof Op.Compute
                                        ? measured.durationNanos(rank, position)
                                        : 0);
        assertThat(ideal.makespanNanos()).isEqualTo(10 + 15);
    }

    @Test
    void measuredTimesMustFitThePrograms() {
        Schedule schedule = ScheduleText.parse("ranks: 1\nmicro-batches: 1\nrank 0: 0F0 0B0\n");

        assertThatThrownBy(
                        () ->
                                Timeline.measured(
                                        schedule, new long[][] {{1}}, new long[][] {{1, 2}}))
                .hasMessage("expected the times of 2 ops of rank 0, got 1 starts and 2 ends");
        assertThatThrownBy(() -> Timeline.measured(schedule, new long[0][], new long[1][]))
                .hasMessage("expected the times of 1 ranks, got starts of 0 and ends of 1");
    }

    @Test
    void negativeCostsAreRefused() {
        assertThatThrownBy(() -> CostModel.of(1, -2, 0))
                .hasMessage("costs must be 0 or more, got forward [1], backward [-2], transfer 0");
    }
}
