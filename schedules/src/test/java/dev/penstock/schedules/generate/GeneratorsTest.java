package dev.penstock.schedules.generate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.schedules.generate.base.BackwardOrder;
import dev.penstock.schedules.generate.base.GenerateOptions;
import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.generate.base.ScheduleKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.render.GridColors;
import dev.penstock.schedules.render.ScheduleGrid;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import java.util.List;
import java.util.OptionalInt;
import org.junit.jupiter.api.Test;

/** Each table is drawn from the schedule's definition, a backward as long as a forward. */
class GeneratorsTest {
    private static String table(Schedule schedule) {
        return ScheduleGrid.time(
                ScheduleSimulator.simulate(schedule, CostModel.of(1, 1, 0)), GridColors.NONE);
    }

    @Test
    void gpipeRunsAllForwardsThenAllBackwards() {
        Schedule schedule = GPipe.schedule(PipelineShape.of(4, 8), BackwardOrder.FIFO);

        assertThat(table(schedule))
                .isEqualTo(
                        """
                        rank 0 | 0F0 0F1 0F2 0F3 0F4 0F5 0F6 0F7 .   .   .   .   .   .   0B0 0B1 0B2 0B3 0B4 0B5 0B6 0B7
                        rank 1 | .   1F0 1F1 1F2 1F3 1F4 1F5 1F6 1F7 .   .   .   .   1B0 1B1 1B2 1B3 1B4 1B5 1B6 1B7 .
                        rank 2 | .   .   2F0 2F1 2F2 2F3 2F4 2F5 2F6 2F7 .   .   2B0 2B1 2B2 2B3 2B4 2B5 2B6 2B7 .   .
                        rank 3 | .   .   .   3F0 3F1 3F2 3F3 3F4 3F5 3F6 3F7 3B0 3B1 3B2 3B3 3B4 3B5 3B6 3B7 .   .   .
                        """);
    }

    @Test
    void gpipeInReverseReturnsTheLastMicroBatchFirst() {
        Schedule schedule = GPipe.schedule(PipelineShape.of(2, 3), BackwardOrder.REVERSE);

        assertThat(table(schedule))
                .isEqualTo(
                        """
                        rank 0 | 0F0 0F1 0F2 .   .   0B2 0B1 0B0
                        rank 1 | .   1F0 1F1 1F2 1B2 1B1 1B0 .
                        """);
    }

    @Test
    void oneForwardOneBackwardTakesTurns() {
        Schedule schedule = OneForwardOneBackward.schedule(PipelineShape.of(4, 8));

        assertThat(table(schedule))
                .isEqualTo(
                        """
                        rank 0 | 0F0 0F1 0F2 0F3 .   .   .   0B0 0F4 0B1 0F5 0B2 0F6 0B3 0F7 0B4 .   0B5 .   0B6 .   0B7
                        rank 1 | .   1F0 1F1 1F2 .   .   1B0 1F3 1B1 1F4 1B2 1F5 1B3 1F6 1B4 1F7 1B5 .   1B6 .   1B7 .
                        rank 2 | .   .   2F0 2F1 .   2B0 2F2 2B1 2F3 2B2 2F4 2B3 2F5 2B4 2F6 2B5 2F7 2B6 .   2B7 .   .
                        rank 3 | .   .   .   3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3 3F4 3B4 3F5 3B5 3F6 3B6 3F7 3B7 .   .   .
                        """);
    }

    @Test
    void oneForwardOneBackwardRunsWithFewerMicroBatchesThanRanks() {
        Schedule schedule = OneForwardOneBackward.schedule(PipelineShape.of(4, 2));

        assertThat(table(schedule))
                .isEqualTo(
                        """
                        rank 0 | 0F0 0F1 .   .   .   .   .   0B0 .   0B1
                        rank 1 | .   1F0 1F1 .   .   .   1B0 .   1B1 .
                        rank 2 | .   .   2F0 2F1 .   2B0 .   2B1 .   .
                        rank 3 | .   .   .   3F0 3B0 3F1 3B1 .   .   .
                        """);
    }

    @Test
    void terapipeGoesThroughSlicesAndBack() {
        Schedule schedule = TeraPipe.schedule(PipelineShape.of(4, 2, 2));

        assertThat(table(schedule))
                .isEqualTo(
                        """
                        rank 0 | 0F0s0 0F0s1 0F1s0 0F1s1 .     .     .     .     .     .     0B1s1 0B1s0 0B0s1 0B0s0
                        rank 1 | .     1F0s0 1F0s1 1F1s0 1F1s1 .     .     .     .     1B1s1 1B1s0 1B0s1 1B0s0 .
                        rank 2 | .     .     2F0s0 2F0s1 2F1s0 2F1s1 .     .     2B1s1 2B1s0 2B0s1 2B0s0 .     .
                        rank 3 | .     .     .     3F0s0 3F0s1 3F1s0 3F1s1 3B1s1 3B1s0 3B0s1 3B0s0 .     .     .
                        """);
    }

    @Test
    void seq1f1bTurnsRoundAtTheLastSlice() {
        Schedule schedule = Seq1F1B.schedule(PipelineShape.of(3, 2, 3));

        assertThat(table(schedule))
                .isEqualTo(
                        """
                        rank 0 | 0F0s0 0F0s1 0F0s2 0F1s0 0F1s1 .     .     0B0s2 0F1s2 0B0s1 .     0B0s0 .     0B1s2 0B1s1 0B1s0
                        rank 1 | .     1F0s0 1F0s1 1F0s2 1F1s0 .     1B0s2 1F1s1 1B0s1 1F1s2 1B0s0 .     1B1s2 1B1s1 1B1s0 .
                        rank 2 | .     .     2F0s0 2F0s1 2F0s2 2B0s2 2F1s0 2B0s1 2F1s1 2B0s0 2F1s2 2B1s2 2B1s1 2B1s0 .     .
                        """);
    }

    @Test
    void seq1f1bWithOneSliceIsOneForwardOneBackward() {
        var shape = PipelineShape.of(5, 7);

        assertThat(Seq1F1B.schedule(shape).programs())
                .isEqualTo(OneForwardOneBackward.schedule(shape).programs());
    }

    @Test
    void everyListedKindCanBeGenerated() {
        for (String kind : Generators.kinds()) {
            int chunks = Generators.kind(kind).chunks() == ScheduleKind.Chunks.ONE ? 1 : 2;
            var shape = new PipelineShape(2, chunks, 6, List.of(1));

            assertThat(Generators.generate(kind, shape).name()).isEqualTo(kind);
        }
    }

    @Test
    void anUnknownKindIsAnsweredWithTheKnownOnes() {
        assertThatThrownBy(() -> Generators.generate("2f2b", PipelineShape.of(2, 3)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageStartingWith(
                        "unknown kind of schedule '2f2b', expected one of gpipe, 1f1b, ");
    }

    @Test
    void shapesThatAKindCannotRunAreRefusedWithThoseThatItCan() {
        var sliced = PipelineShape.of(2, 3, 4);
        var chunked = new PipelineShape(2, 2, 3, List.of(1));

        assertThatThrownBy(() -> Generators.generate("gpipe", sliced))
                .hasMessage("gpipe runs whole sequences, got 4 slices; try 1 slice, or terapipe");
        assertThatThrownBy(() -> Generators.generate("1f1b", sliced))
                .hasMessage("1f1b runs whole sequences, got 4 slices; try 1 slice, or seq1f1b");
        assertThatThrownBy(() -> Generators.generate("1f1b", chunked))
                .hasMessage("1f1b runs one stage per rank, got 2 chunks; try 1");
    }

    @Test
    void groupsThatDoNotComeOutEvenAreAnsweredWithThoseThatDo() {
        var shape = new PipelineShape(4, 2, 9, List.of(1));
        var twelve = new PipelineShape(4, 2, 12, List.of(1));

        assertThatThrownBy(() -> Generators.generate("interleaved-1f1b", shape))
                .hasMessage(
                        "interleaved-1f1b on 4 ranks cannot part 9 micro-batches into 2 equal groups;"
                                + " try 8 or 10 micro-batches, or groups of 9");
        assertThatThrownBy(() -> Interleaved.schedule(twelve, OptionalInt.of(3)))
                .hasMessageEndingWith("into groups of 3; try groups of 4, 6 or 12");
        assertThatThrownBy(() -> Interleaved.schedule(twelve, OptionalInt.of(5)))
                .hasMessageEndingWith("into groups of 5; try groups of 4, 6 or 12");
    }

    @Test
    void costsAreThoseOfAllRanksOrOfEach() {
        var one = new OpCosts(1, 2, 3, 4);
        GenerateOptions options = GenerateOptions.defaults();

        assertThat(options.withCosts(one).costsOf(2)).containsExactly(one, one);
        assertThat(options.withCosts(List.of(one, OpCosts.unit())).costsOf(2))
                .containsExactly(one, OpCosts.unit());
        assertThatThrownBy(() -> options.withCosts(List.of(one, one)).costsOf(3))
                .hasMessage("3 ranks need 1 or 3 costs, got 2");
        assertThatThrownBy(() -> new OpCosts(1, -1, 1, 0)).hasMessageContaining("0 or more");
        assertThatThrownBy(() -> options.withGroupSize(0)).hasMessageContaining("at least 1");
        assertThatThrownBy(() -> options.withMemoryLimit(0)).hasMessageContaining("more than 0");
    }

    @Test
    void costsMayBeNothingAndGroupsOfOne() {
        GenerateOptions options = GenerateOptions.defaults();

        assertThat(new OpCosts(0, 0, 0, 0).communicationNanos()).isZero();
        assertThat(options.withGroupSize(1).groupSize()).hasValue(1);
        assertThat(options.withMemoryLimit(0.5).memoryLimit()).hasValue(0.5);
        assertThat(options.withBackwardOrder(BackwardOrder.REVERSE).backwardOrder())
                .isEqualTo(BackwardOrder.REVERSE);
    }

    @Test
    void aKindRunsOneTwoOrAnyNumberOfChunks() {
        assertThat(List.of(0, 1, 2, 3))
                .filteredOn(ScheduleKind.Chunks.ONE::allow)
                .containsExactly(1);
        assertThat(List.of(0, 1, 2, 3))
                .filteredOn(ScheduleKind.Chunks.TWO::allow)
                .containsExactly(2);
        assertThat(List.of(0, 1, 2, 3))
                .filteredOn(ScheduleKind.Chunks.ANY::allow)
                .containsExactly(1, 2, 3);
    }
}
