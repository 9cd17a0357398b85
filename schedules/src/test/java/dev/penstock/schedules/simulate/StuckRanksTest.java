package dev.penstock.schedules.simulate;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Blocked ranks: what each is missing, which op would provide it, and where that op is. */
class StuckRanksTest {
    private static List<String> stuck(int capacity, String schedule) {
        Schedule parsed = ScheduleText.parse(schedule);
        Simulation simulation =
                ScheduleSimulator.run(parsed, CostModel.unit(), InFlight.uniform(capacity));
        assertThat(ScheduleSimulator.stuck(parsed, InFlight.uniform(capacity)))
                .isEqualTo(simulation.stuck());
        return simulation.stuck().stream().map(wait -> said(wait, parsed)).toList();
    }

    private static String said(BlockedOp wait, Schedule schedule) {
        return "rank %d op %d: %s lacks %s, %s %s"
                .formatted(
                        wait.place().rank(),
                        wait.place().position(),
                        OpText.print(wait.place().op(), schedule.shape()),
                        wait.reason(),
                        OpText.print(wait.awaited(), schedule.shape()),
                        wait.awaitedPlace()
                                .map(p -> "at rank %d op %d".formatted(p.rank(), p.position()))
                                .orElse("nowhere"));
    }

    @Test
    void receivesThatStandBeforeEachOthersSends() {
        assertThat(
                        stuck(
                                8,
                                """
                                ranks: 2
                                micro-batches: 1
                                rank 0: 0F0 0RECV_B0 0SEND_F0 0B0
                                rank 1: 1RECV_F0 1F0 1B0 1SEND_B0
                                """))
                .containsExactly(
                        "rank 0 op 1: 0RECV_B0 lacks TENSOR, 1SEND_B0 at rank 1 op 3",
                        "rank 1 op 0: 1RECV_F0 lacks TENSOR, 0SEND_F0 at rank 0 op 2");
    }

    @Test
    void transfersThatNobodySends() {
        assertThat(
                        stuck(
                                8,
                                """
                                ranks: 3
                                micro-batches: 1
                                rank 0: 0F0
                                rank 1: 1RECV_B0 1B0
                                rank 2: 2RECV_F0 2F0
                                """))
                .containsExactly(
                        "rank 1 op 0: 1RECV_B0 lacks TENSOR, 2SEND_B0 nowhere",
                        "rank 2 op 0: 2RECV_F0 lacks TENSOR, 1SEND_F0 nowhere");
    }

    @Test
    void computationsWhoseNeighboursNeverRunTheirPart() {
        assertThat(
                        stuck(
                                8,
                                """
                                ranks: 3
                                micro-batches: 2
                                rank 0: 0F1
                                rank 1: 1F1 1I1
                                rank 2: 2F1 2F0
                                """))
                .containsExactly(
                        "rank 1 op 1: 1I1 lacks TENSOR, 2B1 nowhere",
                        "rank 2 op 1: 2F0 lacks TENSOR, 1F0 nowhere");
    }

    @Test
    void aSendIntoAFullChannelWaitsForTheNextReceiveFromIt() {
        String schedule =
                """
                ranks: 2
                micro-batches: 2
                rank 0: 0F0 0F1 0SEND_F0 0SEND_F1
                rank 1: 1RECV_F1 1RECV_F0 1F0 1F1
                """;

        assertThat(stuck(1, schedule))
                .containsExactly(
                        "rank 0 op 3: 0SEND_F1 lacks CREDIT, 1RECV_F1 at rank 1 op 0",
                        "rank 1 op 0: 1RECV_F1 lacks TENSOR, 0SEND_F1 at rank 0 op 3");
        assertThat(stuck(2, schedule)).isEmpty();
    }

    @Test
    void gradientsHaveCreditsOfTheirOwn() {
        assertThat(
                        stuck(
                                1,
                                """
                                ranks: 2
                                micro-batches: 2
                                rank 0: 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B1 0RECV_B0
                                rank 1: 1RECV_F0 1RECV_F1 1F0 1B0 1SEND_B0 1F1 1B1 1SEND_B1
                                """))
                .containsExactly(
                        "rank 0 op 4: 0RECV_B1 lacks TENSOR, 1SEND_B1 at rank 1 op 7",
                        "rank 1 op 7: 1SEND_B1 lacks CREDIT, 0RECV_B1 at rank 0 op 4");
    }

    @Test
    void aReductionWaitsForTheMemberThatIsMissing() {
        assertThat(
                        stuck(
                                8,
                                """
                                ranks: 3
                                micro-batches: 1
                                shared: 0 2
                                rank 0: 0F0 0REDUCE_GRAD
                                rank 1: 1B0
                                rank 2: 2F0 2REDUCE_GRAD
                                """))
                .contains("rank 0 op 1: 0REDUCE_GRAD lacks MEMBERS, 2REDUCE_GRAD at rank 2 op 1");
        assertThat(
                        stuck(
                                8,
                                """
                                ranks: 3
                                micro-batches: 1
                                shared: 0 2
                                rank 0: 0F0
                                rank 1: 1F0
                                rank 2: 2F0 2REDUCE_GRAD
                                """))
                .containsExactly("rank 2 op 1: 2REDUCE_GRAD lacks MEMBERS, 0REDUCE_GRAD nowhere");
        assertThat(
                        stuck(
                                8,
                                """
                                ranks: 3
                                micro-batches: 1
                                shared: 0 2
                                rank 0: 0F0 0REDUCE_GRAD 0REDUCE_GRAD
                                rank 1: 1B0
                                rank 2: 2REDUCE_GRAD 2F0 2REDUCE_GRAD
                                """))
                .as("members meet with their last reductions")
                .contains("rank 0 op 2: 0REDUCE_GRAD lacks MEMBERS, 2REDUCE_GRAD at rank 2 op 2");
    }

    @Test
    void aPairWaitsForThePartThatCannotRunAndIsAwaitedForEitherOfItsTensors() {
        assertThat(
                        stuck(
                                8,
                                """
                                ranks: 2
                                micro-batches: 2
                                rank 0: 0F0 (0F1;0B0)OVERLAP_F_B 0B1
                                rank 1: 1F0 1F1 1B0 1B1
                                """))
                .containsExactly(
                        "rank 0 op 1: (0F1;0B0)OVERLAP_F_B lacks TENSOR, 1B0 at rank 1 op 2",
                        "rank 1 op 1: 1F1 lacks TENSOR, (0F1;0B0)OVERLAP_F_B at rank 0 op 1");
        assertThat(
                        stuck(
                                8,
                                """
                                ranks: 2
                                micro-batches: 2
                                rank 0: 0F0 0B0 0F1
                                rank 1: 1F0 (1F1;1B0)OVERLAP_F_B
                                """))
                .containsExactly(
                        "rank 0 op 1: 0B0 lacks TENSOR, (1F1;1B0)OVERLAP_F_B at rank 1 op 1",
                        "rank 1 op 1: (1F1;1B0)OVERLAP_F_B lacks TENSOR, 0F1 at rank 0 op 2");
    }

    @Test
    void aReceiveBeyondTheEndsOfThePipelineWaitsForNobody() {
        assertThat(
                        stuck(
                                8,
                                """
                                ranks: 2
                                micro-batches: 1
                                rank 0: 0RECV_F0
                                rank 1: 1RECV_B0
                                """))
                .containsExactly(
                        "rank 0 op 0: 0RECV_F0 lacks TENSOR, 0RECV_F0 nowhere",
                        "rank 1 op 0: 1RECV_B0 lacks TENSOR, 1RECV_B0 nowhere");
    }

    @Test
    void sendsBeyondTheEndsAndOpsOfUnitsThatDoNotExistStopNobody() {
        Schedule schedule =
                ScheduleText.parse(
                        """
                        ranks: 2
                        micro-batches: 1
                        rank 0: 0F0 0F7 0SEND_B0 0SEND_F0
                        rank 1: 1RECV_F0 1F0 (1F3;1B0)OVERLAP_F_B 1SEND_F0
                        """);

        Simulation simulation =
                ScheduleSimulator.run(schedule, CostModel.unit(), InFlight.uniform(1));

        assertThat(simulation.finished()).isTrue();
        Timeline timeline = simulation.timeline();
        assertThat(timeline.opsRun(0)).isEqualTo(4);
        assertThat(timeline.durationNanos(0, 1)).as("0F7 takes no time").isZero();
        assertThat(timeline.durationNanos(1, 2)).as("nor does a pair with 1F3").isZero();
        assertThat(timeline.startNanos(1, 1)).as("after 0F0 alone").isEqualTo(1);
    }
}
