package dev.penstock.schedules.render;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.OpGrid;
import dev.penstock.schedules.ir.OpPlace;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.TorchCsv;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.ScheduleValidator;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

class FaultGridTest {
    private static String grid(Schedule schedule) {
        return FaultGrid.of(ScheduleValidator.validate(schedule));
    }

    @Test
    void aDeadlockIsShownAsItsCycle() {
        assertThat(
                        grid(
                                TorchCsv.read("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n2F0,2B0,2F1,2B1\n")
                                        .schedule()))
                .isEqualTo(
                        """
                        op     | 0   1    2    3
                        rank 0 | 0F0 !0B0 ?0F1 0B1
                        rank 1 | 1F0 !1F1 ?1B0 1B1
                        rank 2 | 2F0 2B0  2F1  2B1
                        ! is blocked, ? is what it waits for
                        """);
    }

    @Test
    void ofALongScheduleOnlyTheFaultyPartIsShown() {
        Schedule schedule = Generators.generate("gpipe", PipelineShape.of(9, 40));
        var ops = new ArrayList<>(schedule.program(7).ops());
        Collections.swap(ops, 20, 60);
        var programs = new ArrayList<>(schedule.programs());
        programs.set(7, new RankProgram(7, ops));

        assertThat(grid(schedule.withPrograms(programs)))
                .isEqualTo(
                        """
                        op     | .. 18   19   20    21   22   .. 58   59   60    61   62   ..
                        rank 7 | .. 7F18 7F19 !7B20 7F21 7F22 .. 7B18 7B19 ?7F20 7B21 7B22 ..
                        rank 8 | .. 8F18 8F19 !8F20 8F21 8F22 .. 8B18 8B19 ?8B20 8B21 8B22 ..
                        ! is blocked, ? is what it waits for
                        """);
    }

    @Test
    void whatIsMissingStandsWhereTheProgramEnds() {
        assertThat(grid(TorchCsv.read("0F0,0F1,0F2,0B0,0B2\n1F0,1F1,1F2,1B0,1B1,1B2\n").schedule()))
                .isEqualTo(
                        """
                        op     | .. 3   4   5
                        rank 0 | .. 0B0 0B2 (0B1)
                        rank 1 | .. 1B0 1B1 1B2
                        (..) is missing
                        """);
    }

    @Test
    void everyKindOfFaultIsMarked() {
        Schedule schedule =
                TorchCsv.read("0F0,0F0,0B0,0F7,0RESHARD\n".replace("0F7", "0SEND_F7")).schedule();

        assertThat(grid(schedule))
                .isEqualTo(
                        """
                        op     | 0    1    2    3         4
                        rank 0 | !0F0 !0F0 !0B0 !0SEND_F7 !0RESHARD
                        ! breaks a rule
                        """);
    }

    @Test
    void aPeakIsMarkedWhereItIsReached() {
        Schedule schedule = Generators.generate("1f1b", PipelineShape.of(2, 2));
        Conditions conditions = Conditions.training().withPeakUnitsLimit(1);

        assertThat(FaultGrid.of(ScheduleValidator.validate(schedule, conditions)))
                .startsWith(
                        """
                        op     | 0   1    2   3
                        rank 0 | 0F0 !0F1 0B0 0B1
                        """);
    }

    @Test
    void aStandstillShowsWhoStandsWhereAndWhatIsAwaited() {
        Schedule schedule =
                TorchCsv.read("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0\n1RECV_F0,1F0,1RECV_F1,1F1\n")
                        .schedule();
        var standing = new OpPlace(1, 2, schedule.program(1).ops().get(2));
        var awaited = new OpPlace(0, 3, schedule.program(0).ops().get(3));

        assertThat(OpGrid.ofStandstill(schedule, List.of(standing), List.of(awaited)))
                .isEqualTo(
                        """
                        op     | 0        1        2         3         4        5
                        rank 0 | 0F0      0SEND_F0 0F1       ?0SEND_F1 0RECV_B0 0B0
                        rank 1 | 1RECV_F0 1F0      !1RECV_F1 1F1
                        ! is blocked, ? is what it waits for
                        """);
    }

    @Test
    void aValidScheduleHasNone() {
        assertThat(grid(TorchCsv.read("0F0,0B0\n").schedule())).isEmpty();
    }
}
