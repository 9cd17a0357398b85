package dev.penstock.schedules.generate;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.generate.base.BackwardOrder;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.InsertOffloads;
import dev.penstock.schedules.lower.OffloadSettings;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.MemoryProfile;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import java.util.Collections;
import java.util.List;
import java.util.OptionalInt;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Ranks fill and drain in steps of one chunk's slice: with f and b the costs of such a step, all
 * work plus one step for each further rank.
 */
class SlicedAndChunkedClosedFormsTest {
    private static final long[][] COSTS = {{1, 1}, {1, 2}, {3, 5}, {5, 2}};

    private static long makespan(Schedule schedule, long forward, long backward) {
        CostModel costs = CostModel.of(forward, backward, 0);
        return ScheduleSimulator.simulate(schedule, costs).makespanNanos();
    }

    private static List<Integer> peaks(Schedule schedule) {
        return MemoryProfile.of(schedule, PassKind.TRAINING).ranks().stream()
                .map(MemoryProfile.RankPeak::peakUnits)
                .toList();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"interleaved-1f1b", "breadth-first", "seq1f1b-interleaved", "terapipe-1f1b"})
    void theBubbleIsOneStepForEachFurtherRank(String kind) {
        for (PipelineShape shape : LegalShapes.everySmallShape()) {
            if (LegalShapes.canRun(kind, shape) && shape.microBatches() >= shape.ranks()) {
                Schedule schedule = Generators.generate(kind, shape);
                int steps = shape.chunks() * shape.unitsPerStage() + shape.ranks() - 1;
                for (long[] cost : COSTS) {
                    assertThat(makespan(schedule, cost[0], cost[1]))
                            .as("%s %s", kind, shape)
                            .isEqualTo(steps * (cost[0] + cost[1]));
                }
            }
        }
    }

    @Test
    void interleavedHoldsItsWarmUpAndOneMore() {
        for (PipelineShape shape : LegalShapes.everySmallShape()) {
            if (LegalShapes.canRun("interleaved-1f1b", shape)) {
                int microBatches = shape.microBatches();
                int group = microBatches / Math.max(1, microBatches / shape.ranks());
                List<Integer> peaks = peaks(Interleaved.schedule(shape, OptionalInt.empty()));
                for (int rank = 0; rank < shape.ranks(); rank++) {
                    int warmUp = 2 * (shape.ranks() - rank - 1) + (shape.chunks() - 1) * group;
                    assertThat(peaks.get(rank))
                            .as("rank %d of %s", rank, shape)
                            .isEqualTo(Math.min(warmUp + 1, microBatches * shape.chunks()));
                }
            }
        }
    }

    @Test
    void gisHoldsWhatItsDistanceSaysAndItsBubbleShrinksWithTheGroup() {
        for (PipelineShape shape : LegalShapes.everySmallShape()) {
            if (!LegalShapes.canRun("gis", shape)) {
                continue;
            }
            int ranks = shape.ranks();
            int further = shape.chunks() - 1;
            for (int group = 1; group <= ranks; group++) {
                Schedule schedule = GeneralizedInterleaved.schedule(shape, OptionalInt.of(group));
                int all = shape.microBatches() * shape.chunks();
                long place = GeneralizedInterleaved.places(shape, group)[further];
                List<Integer> peaks = peaks(schedule);
                for (int rank = 0; rank < ranks; rank++) {
                    long held = place + ranks - rank;
                    assertThat((long) peaks.get(rank))
                            .as("rank %d of %s, groups of %d", rank, shape, group)
                            .isLessThanOrEqualTo(Math.min(held, all));
                    if (shape.microBatches() >= 2 * place + ranks) {
                        assertThat((long) peaks.get(rank)).isEqualTo(held);
                    }
                }
                boolean near = group == 1 || 3 * group >= 2 * ranks;
                if (near && shape.microBatches() % group == 0) {
                    int bubble = shape.chunks() * (ranks - 1) - (group - 1) * further;
                    long time = makespan(schedule, 1, 2);
                    assertThat(time).as("%s", shape).isLessThanOrEqualTo(3L * (all + bubble));
                    if (shape.microBatches() >= ranks + place) {
                        assertThat(time)
                                .as("%s, groups of %d", shape, group)
                                .isEqualTo(3L * (all + bubble));
                    }
                }
            }
        }
    }

    /** PO-H: the early half of the chunks waits three times as long as the late half. */
    @Test
    void halfOfTheStagesHoldThreeQuartersOfTheUnits() {
        var shape = new PipelineShape(24, 8, 96, List.of(1));
        Schedule gis = Generators.generate("gis", shape);
        Schedule half =
                InsertOffloads.into(
                        gis,
                        new OffloadSettings(
                                IntStream.range(0, 96).boxed().collect(Collectors.toSet()), 1));
        Schedule full = InsertOffloads.into(gis, new OffloadSettings(Set.of(), 1));

        int kept = Collections.max(peaks(gis));
        assertThat(kept).isEqualTo(16 * 7 + 7 + 24);
        assertThat(Collections.max(peaks(half)) / (double) kept).isBetween(0.25, 0.3);
        assertThat(Collections.max(peaks(full))).isLessThanOrEqualTo(6);
        assertThat(Collections.max(peaks(Generators.generate("interleaved-1f1b", shape))))
                .isEqualTo(2 * 23 + 7 * 24 + 1);
    }

    @Test
    void seq1f1bInterleavedTurnsRoundAtTheLastSliceOfTheLastChunk() {
        for (PipelineShape shape : LegalShapes.everySmallShape()) {
            int ranks = shape.ranks();
            boolean groupsOfRanks =
                    ranks % shape.slices() == 0
                            && shape.microBatches() % (ranks / shape.slices()) == 0;
            if (groupsOfRanks) {
                Schedule schedule = Seq1F1BInterleaved.schedule(shape, OptionalInt.empty());
                int all = shape.chunks() * shape.unitsPerStage();
                for (int rank = 0; rank < ranks; rank++) {
                    int warmUp =
                            (shape.chunks() - 1) * ranks
                                    + 2 * (ranks - rank - 1)
                                    + shape.slices()
                                    - 1;
                    assertThat(peaks(schedule).get(rank))
                            .as("rank %d of %s", rank, shape)
                            .isEqualTo(Math.min(warmUp + 1, all));
                }
            }
        }
    }

    @Test
    void breadthFirstHoldsEverything() {
        for (PipelineShape shape : LegalShapes.everySmallShape()) {
            assertThat(peaks(BreadthFirst.schedule(shape)))
                    .containsOnly(shape.chunks() * shape.unitsPerStage());
        }
    }

    @Test
    void terapipeInside1f1bHoldsTheMicroBatchesOf1f1b() {
        for (PipelineShape shape : LegalShapes.everySmallShape()) {
            if (shape.chunks() == 1) {
                List<Integer> peaks = peaks(TeraPipe1F1B.schedule(shape));
                for (int rank = 0; rank < shape.ranks(); rank++) {
                    int held = Math.min(shape.ranks() - rank, shape.microBatches());
                    assertThat(peaks.get(rank)).isEqualTo(held * shape.slices());
                }
            }
        }
    }

    @Test
    void oneSliceOrOneChunkIsTheSimplerSchedule() {
        for (PipelineShape shape : LegalShapes.everySmallShape()) {
            if (LegalShapes.canRun("interleaved-1f1b", shape)) {
                assertThat(Seq1F1BInterleaved.schedule(shape, OptionalInt.empty()).programs())
                        .isEqualTo(Interleaved.schedule(shape, OptionalInt.empty()).programs());
            }
            if (LegalShapes.canRun("1f1b", shape)) {
                assertThat(TeraPipe1F1B.schedule(shape).programs())
                        .isEqualTo(OneForwardOneBackward.schedule(shape).programs());
                assertThat(BreadthFirst.schedule(shape).programs())
                        .isEqualTo(GPipe.schedule(shape, BackwardOrder.REVERSE).programs());
            }
        }
    }
}
