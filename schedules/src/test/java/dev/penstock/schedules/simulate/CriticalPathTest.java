package dev.penstock.schedules.simulate;

import static java.util.stream.Collectors.toSet;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.schedules.NaiveSimulator;
import dev.penstock.schedules.RandomOrders;
import dev.penstock.schedules.WildCosts;
import dev.penstock.schedules.generate.OneForwardOneBackward;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.lower.InsertOffloads;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.lower.LoweringOptions;
import dev.penstock.schedules.lower.OffloadSettings;
import dev.penstock.schedules.simulate.CriticalPath.Activity;
import dev.penstock.schedules.simulate.CriticalPath.Cause;
import dev.penstock.schedules.simulate.CriticalPath.Step;
import java.util.Collection;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class CriticalPathTest {
    private static final int ORDERS = 100;

    private interface Check {
        void of(Schedule schedule, CostModel costs, InFlight inFlight);
    }

    /** Computations alone, with transfers and few credits, with gathers and reductions. */
    private static void everywhere(Check check) {
        for (int seed = 0; seed < ORDERS; seed++) {
            Schedule order = RandomOrders.schedule(seed);
            int capacity = 1 + seed % 2;
            var options = LoweringOptions.plain().withCapacity(capacity);
            var tied = options.withSharedGroups(List.of(List.of(0, order.shape().stages() - 1)));
            Schedule lowered = Lowering.lower(order, tied);
            var costs = new WildCosts(seed);
            InFlight few = InFlight.uniform(capacity);
            check.of(order, costs, InFlight.unbounded());
            check.of(lowered, costs, few);
            check.of(RandomOrders.withParameterOps(order, seed), costs, few);
            var all = IntStream.range(0, order.shape().stages()).boxed().collect(toSet());
            check.of(InsertOffloads.into(lowered, new OffloadSettings(all, seed % 3)), costs, few);
            Schedule pairs = RandomOrders.withPairs(order);
            // a pair waits for both of its parts, which some orders do not survive
            if (ScheduleSimulator.stuck(pairs, few).isEmpty()) {
                check.of(pairs, costs, few);
            }
            check.of(
                    RandomOrders.withParameterOps(Lowering.lower(order, options), seed),
                    costs,
                    few);
        }
    }

    @Test
    void isAChainWithoutGapsAsLongAsTheMakespan() {
        Set<Cause> causes = EnumSet.noneOf(Cause.class);
        everywhere(
                (schedule, costs, inFlight) -> {
                    CriticalPath path = CriticalPath.of(schedule, costs, inFlight);

                    assertThat(path.makespanNanos()).isEqualTo(makespan(schedule, costs, inFlight));
                    long at = 0;
                    for (Step step : path.steps()) {
                        assertThat(step.fromNanos()).isEqualTo(at);
                        assertThat(step.nanos()).isNotNegative();
                        at = step.toNanos();
                        causes.add(step.cause());
                    }
                    assertThat(at).isEqualTo(path.makespanNanos());
                    assertThat(path.steps().getFirst().cause()).isEqualTo(Cause.BEGINNING);
                });
        assertThat(causes)
                .as("the orders are wild enough")
                .containsExactlyInAnyOrder(Cause.values());
    }

    @Test
    void everyStepLengthensTheMakespanByWhatItGrows() {
        everywhere(
                (schedule, costs, inFlight) -> {
                    CriticalPath path = CriticalPath.of(schedule, costs, inFlight);
                    for (Step step : path.steps()) {
                        if (step.activity() == Activity.RUNS) {
                            CostModel longer = longer(costs, step.place().rank(), step);

                            assertThat(
                                            ScheduleSimulator.simulate(schedule, longer, inFlight)
                                                    .makespanNanos())
                                    .as(() -> step + "\n" + ScheduleText.print(schedule))
                                    .isEqualTo(path.makespanNanos() + 1);
                        }
                    }
                });
    }

    private static CostModel longer(CostModel costs, int rank, Step step) {
        long nanos = costs.nanos(rank, step.place().position(), step.place().op());
        return Straggler.ofOp(costs, rank, step.place().position(), (nanos + 1.0) / nanos);
    }

    private static long makespan(Schedule schedule, CostModel costs, InFlight inFlight) {
        return new NaiveSimulator(schedule, costs, inFlight)
                .ends().stream().flatMap(Collection::stream).mapToLong(end -> end).max().orElse(0);
    }

    @Test
    void ofOneForwardOneBackwardZigzagsThroughTheLastRank() {
        Schedule schedule = OneForwardOneBackward.schedule(PipelineShape.of(3, 3));

        CriticalPath path =
                CriticalPath.of(schedule, UnitCosts.parse("transfer=4"), InFlight.unbounded());

        assertThat(path.steps().stream().filter(s -> s.activity() == Activity.RUNS))
                .extracting(s -> OpText.print(s.place().op(), schedule.shape()))
                .startsWith("0F0")
                .endsWith("0B2");
        assertThat(path.nanos(Activity.RUNS) + path.nanos(Activity.UNDER_WAY))
                .isEqualTo(path.makespanNanos());
        assertThat(path.nanos(Activity.ON_LINK)).isZero();
    }

    @Test
    void namesWhatEachStepWaitedFor() {
        Schedule schedule =
                ScheduleText.parse(
                        """
                        ranks: 2
                        micro-batches: 2
                        rank 0: 0UNSHARD 0F0 0SEND_F0 0F1 0SEND_F1
                        rank 1: 1RECV_F0 1F0 1RECV_F1 1F1
                        """);
        UnitCosts costs = UnitCosts.parse("gather=3,forward=1,link=10,transfer=5");

        CriticalPath path = CriticalPath.of(schedule, costs, InFlight.unbounded());

        assertThat(path.makespanNanos()).isEqualTo(3 + 1 + 10 + 10 + 5 + 1);
        assertThat(path.steps())
                .extracting(Step::activity)
                .containsExactly(
                        Activity.BACKGROUND,
                        Activity.RUNS,
                        Activity.RUNS,
                        Activity.ON_LINK,
                        Activity.ON_LINK,
                        Activity.UNDER_WAY,
                        Activity.RUNS,
                        Activity.RUNS);
        assertThat(path.steps())
                .extracting(Step::cause)
                .containsExactly(
                        Cause.BEGINNING,
                        Cause.PARAMETERS,
                        Cause.RANK,
                        Cause.RANK,
                        Cause.LINK,
                        Cause.LINK,
                        Cause.TENSOR,
                        Cause.RANK);
        assertThat(path.steps().get(3).place().op()).isInstanceOf(Op.SendActivation.class);
    }

    @Test
    void aStuckScheduleHasNone() {
        Schedule reversed =
                ScheduleText.parse(
                        "ranks: 2\nmicro-batches: 1\nrank 0: 0B0 0F0\nrank 1: 1F0 1B0\n");

        assertThatThrownBy(() -> CriticalPath.of(reversed, CostModel.unit(), InFlight.unbounded()))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("gets stuck");
    }
}
