package dev.penstock.schedules.plan;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.simulate.MemoryProfile;
import java.util.Collections;
import java.util.List;
import java.util.function.Predicate;
import org.junit.jupiter.api.Test;

class ScheduleFamilyTest {
    private static ScheduleFamily family(String kind) {
        return ScheduleFamily.all(List.of(kind), List.of(1, 2, 3)).getFirst();
    }

    private static List<String> kindsThat(Predicate<ScheduleFamily> are) {
        return ScheduleFamily.all(Generators.kinds(), List.of(1, 2, 3)).stream()
                .filter(are)
                .map(ScheduleFamily::kind)
                .toList();
    }

    @Test
    void whatAKindIsIsFoundOut() {
        assertThat(kindsThat(ScheduleFamily::splitsBackward))
                .containsExactly(
                        "zb-h1",
                        "zb-h2",
                        "zb-1p",
                        "zb-2p",
                        "interleaved-zb",
                        "zb-v",
                        "v-half",
                        "v-min",
                        "dualpipe-v",
                        "stp");
        assertThat(kindsThat(ScheduleFamily::vShaped))
                .containsExactly("zb-v", "v-half", "v-min", "dualpipe-v", "stp");
        assertThat(kindsThat(ScheduleFamily::sliced))
                .containsExactly(
                        "breadth-first",
                        "zb-h1",
                        "zb-h2",
                        "seq1f1b",
                        "seq1f1b-interleaved",
                        "terapipe",
                        "terapipe-1f1b");
        assertThat(kindsThat(ScheduleFamily::needsSlices))
                .containsExactly("seq1f1b", "seq1f1b-interleaved", "terapipe", "terapipe-1f1b");
        assertThat(family("1f1b").chunks()).containsExactly(1);
        assertThat(family("interleaved-1f1b").chunks()).containsExactly(1, 2, 3);
        assertThat(family("zb-v").chunks()).containsExactly(2);
        assertThat(ScheduleFamily.all(List.of("1f1b", "zb-v"), List.of(3))).isEmpty();
    }

    /** The closed forms equal the orders' own times and are not merely lower bounds. */
    @Test
    void whatIsKnownOfMemoryIsWhatTheOrdersHold() {
        for (String kind : List.of("gpipe", "breadth-first", "1f1b", "interleaved-1f1b")) {
            int chunks = family(kind).chunks().getLast();
            for (int ranks = 2; ranks <= 4; ranks++) {
                for (int microBatches : new int[] {ranks, 2 * ranks, 4 * ranks}) {
                    assertHeld(kind, new PipelineShape(ranks, chunks, microBatches, List.of(1)));
                }
            }
        }
        for (int slices = 1; slices <= 4; slices++) {
            List<Integer> lengths = Collections.nCopies(slices, 1);
            assertHeld("seq1f1b", new PipelineShape(3, 1, 8, lengths));
            assertHeld("terapipe", new PipelineShape(3, 1, 8, lengths));
        }
        assertHeld("1f1b", PipelineShape.of(4, 2));
    }

    private static void assertHeld(String kind, PipelineShape shape) {
        ScheduleFamily family = family(kind);
        for (MemoryProfile.RankPeak peak :
                MemoryProfile.of(Generators.generate(kind, shape), PassKind.TRAINING).ranks()) {
            assertThat(family.leastPeakUnits(shape, peak.rank()))
                    .as("%s, rank %d of %s", kind, peak.rank(), shape)
                    .isEqualTo(peak.peakUnits());
        }
    }

    @Test
    void stagesGoRoundOrDownAndUp() {
        assertThat(family("interleaved-1f1b").placement(3, 2)).isEqualTo(Placement.loop(3, 2));
        assertThat(family("zb-v").placement(3, 2)).isEqualTo(Placement.v(3));
    }
}
