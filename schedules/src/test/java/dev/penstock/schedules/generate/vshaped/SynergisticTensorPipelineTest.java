package dev.penstock.schedules.generate.vshaped;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.MemoryProfile;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.simulate.UnitCosts;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** STP beside its authors' order and their table of bubbles and peaks. */
class SynergisticTensorPipelineTest {
    /** What the published generator writes, without its transfers and offloads. */
    private static final String THREE_RANKS =
            """
            F0 F1 F2 F3 F4 f0 F5 f1+i0 F6+w0 f2+i1 F7+w1 f3+b2 B0 f4+i3 B1 f5+i4 B2 f6+i5 B3 f7+i6 B4 b7 B5 w3 w4 B6 w5 w6 B7
            F0 F1 F2 f0 F3 f1 F4+F5 f2+i0 F6+w0 f3+b1 F7+B0 f4+i2 B1 f5+i3 B2 f6+i4 B3 f7+i5 B4 b6 B5 b7 B6 w2 w3 B7 w4 w5
            F0 f0 F1 f1 F2 f2 F3 F4+F5 f3+b0 F6+B0 f4+b1 F7+I1 f5+i2 B2 f6+i3 B3 f7+i4 B4 b5 B5 b6 B6 b7 B7 W1 w2 w3 w4
            """;

    private static final String FOUR_RANKS =
            """
            F0 F1 F2 F3 F4 F5 F6 f0 F7 f1+i0 F8+w0 f2+i1 F9+w1 f3+i2 F10+w2 f4+b3 F11+B0 f5+b4 B1 f6+i5 B2 f7+i6 B3 f8+i7 B4 f9+i8 B5 f10+i9 B6 f11+i10 B7 b11 B8 w5 w6 B9 w7 w8 B10 w9 w10 B11
            F0 F1 F2 F3 F4 f0 F5 f1 F6+F7 f2+i0 F8+w0 f3+i1 F9+w1 f4+b2 F10+B0 f5+b3 F11+B1 f6+i4 B2 f7+i5 B3 f8+i6 B4 f9+i7 B5 f10+i8 B6 f11+i9 B7 b10 B8 b11 B9 w4 w5 B10 w6 w7 B11 w8 w9
            F0 F1 F2 f0 F3 f1 F4 f2 F5 F6+F7 f3+i0 F8+w0 f4+b1 F9+B0 f5+b2 F10+B1 f6+b3 F11+I2 f7+i4 B3 f8+i5 B4 f9+i6 B5 f10+i7 B6 f11+i8 B7 b9 B8 b10 B9 b11 B10 W2 w4 B11 w5 w6 w7 w8
            F0 f0 F1 f1 F2 f2 F3 f3 F4+F5 F6+F7 f4+b0 F8+B0 f5+b1 F9+B1 f6+b2 F10+B2 f7+i3 F11+I3 f8+i4 B4 f9+i5 B5 f10+i6 B6 f11+i7 B7 b8 B8 b9 B9 b10 B10 b11 B11 w3 W3 w4 w5 w6 w7
            """;

    /** A sum takes a quarter of a forward. */
    private static final UnitCosts SUMS = costs(4, 1);

    private static UnitCosts costs(long work, long sum) {
        return UnitCosts.parse(
                "forward=%d,backward-input=%d,backward-weight=%d,sum=%d"
                        .formatted(work, work, work, sum));
    }

    @Test
    void equalsThePublishedOrderOpForOp() {
        assertThat(cells("stp", 3, 8)).isEqualTo(THREE_RANKS);
        assertThat(cells("stp", 4, 12)).isEqualTo(FOUR_RANKS);
    }

    private static String cells(String kind, int ranks, int microBatches) {
        Schedule schedule = Generators.generate(kind, VSchedules.shape(ranks, microBatches));
        return schedule.programs().stream()
                .map(program -> cells(schedule, program))
                .collect(Collectors.joining("\n", "", "\n"));
    }

    private static String cells(Schedule schedule, RankProgram program) {
        return program.ops().stream()
                .map(op -> VPicture.cell(schedule, op))
                .collect(Collectors.joining(" "));
    }

    /**
     * Bubble of the pipeline, time of sums that stand alone, and peak of the first rank, as in the
     * paper's table: interleaved 1F1B (p - 1)(F + AR + B + W), 2m AR, 3p - 2; ZB-V (p - 1)(F + 2 AR
     * + B - 2W), 4m AR, 2p; STP (p - 1)(F + AR + B - W), (2p + 1) AR, 3p. Here a chunk whose
     * forward is beside or just before the first backward counts too, and for even p the last rank
     * of STP has no sum that stands alone, which is one AR less.
     */
    @ParameterizedTest
    @CsvSource({"2, 6", "2, 8", "3, 9", "3, 15", "4, 12", "4, 20", "6, 18", "8, 24"})
    void idlesAndHoldsAsTheTableSays(int p, int m) {
        assertFirstRank("interleaved-1f1b", p, m, (p - 1) * (4 + 1 + 4 + 4), 2 * m, 3 * p - 1);
        assertFirstRank("zb-v", p, m, (p - 1) * (4 + 2 + 4 - 2 * 4), 4 * m, 2 * p);
        int even = p % 2 == 0 ? 1 : 0;
        assertFirstRank("stp", p, m, (p - 1) * (4 + 1 + 4 - 4) - even, 2 * p + 1, 3 * p + 1);
    }

    @Test
    void laterRanksHoldTheirOwnNumberMore() {
        var shape = VSchedules.shape(6, 20);

        assertThat(MemoryProfile.of(Generators.generate("stp", shape), PassKind.TRAINING).ranks())
                .extracting(MemoryProfile.RankPeak::peakUnits)
                .containsExactly(19, 19, 20, 21, 22, 23);
    }

    private static void assertFirstRank(
            String kind, int ranks, int microBatches, int bubble, int sums, int peak) {
        Schedule schedule = Generators.generate(kind, VSchedules.shape(ranks, microBatches));
        long alone = 0;
        for (Op op : schedule.program(0).ops()) {
            alone += SUMS.nanos(0, 0, op) - costs(4, 0).nanos(0, 0, op);
        }

        assertThat(alone).as("sums of %s", kind).isEqualTo(sums);
        assertThat(
                        ScheduleSimulator.simulate(schedule, SUMS)
                                .bubble()
                                .ranks()
                                .getFirst()
                                .idleInSpanNanos())
                .as("bubble of %s", kind)
                .isEqualTo(bubble);
        assertThat(MemoryProfile.of(schedule, PassKind.TRAINING).ranks().getFirst().peakUnits())
                .as("peak of %s", kind)
                .isEqualTo(peak);
    }

    @Test
    void ofFewMicroBatchesItLeavesOutWhatIsTooMuch() {
        assertThat(cells("stp", 3, 2))
                .isEqualTo(
                        """
                        F0 F1 f0 f1+i0 w0 i1 w1 B0 B1
                        F0 F1 f0 f1 i0 w0 b1 B0 B1
                        F0 f0 F1 f1 b0 B0 b1 I1 W1
                        """);
    }
}
