package dev.penstock.schedules.lower;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.RandomOrders;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.ir.TorchCsv;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.simulate.MemoryProfile;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.ScheduleValidator;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Splitting, merging and recomputing. */
class BackwardPassesTest {
    private static String split(String csv) {
        return TorchCsv.print(SplitBackward.in(TorchCsv.read(csv).schedule())).strip();
    }

    private static String merged(String csv) {
        return TorchCsv.print(MergeBackward.in(TorchCsv.read(csv).schedule())).strip();
    }

    private static Stream<Op> ops(Schedule schedule) {
        return schedule.programs().stream().flatMap(program -> program.ops().stream());
    }

    private static void canRun(Schedule order) {
        Schedule lowered = Lowering.lower(order, LoweringOptions.plain().withCapacity(1));
        ScheduleValidator.validate(lowered, Conditions.training().with(InFlight.uniform(1)))
                .orThrow();
    }

    @Test
    void aBackwardBecomesItsTwoParts() {
        assertThat(split("0F0,0F1,0B0,0B1")).isEqualTo("0F0,0F1,0I0,0W0,0I1,0W1");
        assertThat(split("0F0,(0F1;0B0)OVERLAP_F_B,0I1,0W1"))
                .isEqualTo("0F0,(0F1;0I0)OVERLAP_F_B,0W0,0I1,0W1");
    }

    @Test
    void othersDoNotWaitForTheWeights() {
        assertThat(split("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"))
                .isEqualTo("0F0,0SEND_F0,0RECV_B0,0I0,0W0\n1RECV_F0,1F0,1I0,1SEND_B0,1W0");
    }

    @Test
    void partsThatStandTogetherBecomeOne() {
        assertThat(merged("0F0,0F1,0I0,0W0,0I1,0F2,0W1,0B2"))
                .isEqualTo("0F0,0F1,0B0,0I1,0F2,0W1,0B2");
        assertThat(merged("0F0,0F1,0I0,0I1,0W0,0W1")).isEqualTo("0F0,0F1,0I0,0I1,0W0,0W1");
        assertThat(merged("0F0,(0F1;0I0)OVERLAP_F_B,0W0,0B1"))
                .isEqualTo("0F0,(0F1;0B0)OVERLAP_F_B,0B1");
        assertThat(merged("0F0,0I0")).isEqualTo("0F0,0I0");
    }

    @Test
    void anyOrderCanRunSplitAndMerged() {
        RandomOrders.some(200)
                .forEach(
                        order -> {
                            Schedule split = SplitBackward.in(order);
                            Schedule merged = MergeBackward.in(order);

                            canRun(split);
                            canRun(merged);
                            assertThat(ops(split)).noneMatch(op -> op instanceof Op.Backward);
                            assertThat(MergeBackward.in(split)).isEqualTo(merged);
                            Schedule lowered = Lowering.lower(merged);
                            assertThat(MergeBackward.in(SplitBackward.in(lowered)))
                                    .isEqualTo(lowered);
                        });
    }

    @Test
    void aRecomputeStandsRightBeforeItsBackward() {
        Schedule schedule =
                TorchCsv.read("0F0,1F0,0F1,(1F1;1B0)OVERLAP_F_B,0I0,0W0,1B1,0B1").schedule();

        assertThat(rank(InsertRecompute.into(schedule)))
                .isEqualTo("0F0 1F0 0F1 1R0 (1F1;1B0)OVERLAP_F_B 0R0 0I0 0W0 1R1 1B1 0R1 0B1");
        Schedule some = InsertRecompute.into(schedule, stage -> stage == 0);
        assertThat(rank(some))
                .isEqualTo("0F0 1F0 0F1 (1F1;1B0)OVERLAP_F_B 0R0 0I0 0W0 1B1 0R1 0B1");
        assertThat(InsertRecompute.into(some, stage -> stage == 0)).isEqualTo(some);
    }

    private static String rank(Schedule schedule) {
        String text = ScheduleText.print(schedule);
        return text.substring(text.indexOf("rank 0: ") + 8).strip();
    }

    @Test
    void anyOrderCanRunWithRecomputeAndHoldsOneUnitPerBackward() {
        RandomOrders.some(100)
                .forEach(
                        order -> {
                            Schedule recomputed = InsertRecompute.into(MergeBackward.in(order));

                            canRun(recomputed);
                            assertThat(ops(recomputed).filter(op -> op instanceof Op.Recompute))
                                    .hasSize(order.shape().units());
                        });
        Schedule gpipe = TorchCsv.read("0F0,0F1,0F2,0F3,0B0,0B1,0B2,0B3").schedule();
        assertThat(MemoryProfile.of(InsertRecompute.into(gpipe), PassKind.TRAINING).peakUnits())
                .isEqualTo(1);
    }

    @Test
    void aRecomputeThatIsThereStaysWhereItIs() {
        Schedule early =
                ScheduleText.parse("ranks: 1\nmicro-batches: 2\nrank 0: 0F0 0R0 0F1 0B0 0B1\n");

        assertThat(rank(InsertRecompute.into(early))).isEqualTo("0F0 0R0 0F1 0B0 0R1 0B1");
        assertThat(ops(early)).contains(new Op.Recompute(new WorkUnit(0, 0, 0)));
    }
}
