package dev.penstock.schedules.generate;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.generate.base.BackwardOrder;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.MemoryProfile;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import java.util.List;
import java.util.OptionalInt;
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
