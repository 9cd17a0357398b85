package dev.penstock.schedules.generate.zerobubble;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.schedules.generate.Seq1F1B;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.render.GridColors;
import dev.penstock.schedules.render.ScheduleGrid;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.ScheduleValidator;
import java.util.List;
import java.util.OptionalInt;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The hand-made orders with split backwards; all ops of the tables take the same time. */
class ZeroBubbleTest {
    private static String table(Schedule schedule) {
        return ScheduleGrid.time(
                ScheduleSimulator.simulate(schedule, CostModel.split(1, 1, 1, 0)), GridColors.NONE);
    }

    /** Backwards merged again, at the place of the part for the input. */
    private static List<List<Op>> merged(Schedule schedule) {
        return schedule.programs().stream()
                .map(program -> program.ops().stream().flatMap(ZeroBubbleTest::merged).toList())
                .toList();
    }

    private static Stream<Op> merged(Op op) {
        return switch (op) {
            case Op.BackwardInput(var unit) -> Stream.of(new Op.Backward(unit));
            case Op.BackwardWeight _ -> Stream.empty();
            case Op other -> Stream.of(other);
        };
    }

    private static List<List<Op>> ops(Schedule schedule) {
        return schedule.programs().stream().map(program -> List.copyOf(program.ops())).toList();
    }

    @Test
    void h1FillsTheEndWithWeights() {
        assertThat(table(ZeroBubbleH1.schedule(PipelineShape.of(4, 8))))
                .isEqualTo(
                        """
                        rank 0 | 0F0 0F1 0F2 0F3 .   .   .   0I0 0W0 0F4 0I1 0W1 0F5 0I2 0W2 0F6 0I3 0W3 0F7 0I4 0W4 0I5 0W5 0I6 0W6 0I7 0W7
                        rank 1 | .   1F0 1F1 1F2 .   .   1I0 1F3 1I1 1W0 1F4 1I2 1W1 1F5 1I3 1W2 1F6 1I4 1W3 1F7 1I5 1W4 1I6 1W5 1I7 1W6 1W7
                        rank 2 | .   .   2F0 2F1 .   2I0 2F2 2I1 2F3 2I2 2W0 2F4 2I3 2W1 2F5 2I4 2W2 2F6 2I5 2W3 2F7 2I6 2W4 2I7 2W5 2W6 2W7
                        rank 3 | .   .   .   3F0 3I0 3F1 3I1 3F2 3I2 3F3 3I3 3W0 3F4 3I4 3W1 3F5 3I5 3W2 3F6 3I6 3W3 3F7 3I7 3W4 3W5 3W6 3W7
                        """);
    }

    @Test
    void h2IsAParallelogram() {
        assertThat(table(ZeroBubbleH2.schedule(PipelineShape.of(4, 8))))
                .isEqualTo(
                        """
                        rank 0 | 0F0 0F1 0F2 0F3 0F4 0F5 0F6 0I0 0W0 0F7 0I1 0W1 0I2 0W2 0I3 0W3 0I4 0W4 0I5 0W5 0I6 0W6 0I7 0W7 .   .   .
                        rank 1 | .   1F0 1F1 1F2 1F3 1F4 1I0 1F5 1I1 1F6 1I2 1W0 1F7 1I3 1W1 1I4 1W2 1I5 1W3 1I6 1W4 1I7 1W5 1W6 1W7 .   .
                        rank 2 | .   .   2F0 2F1 2F2 2I0 2F3 2I1 2F4 2I2 2F5 2I3 2F6 2I4 2W0 2F7 2I5 2W1 2I6 2W2 2I7 2W3 2W4 2W5 2W6 2W7 .
                        rank 3 | .   .   .   3F0 3I0 3F1 3I1 3F2 3I2 3F3 3I3 3F4 3I4 3F5 3I5 3F6 3I6 3W0 3F7 3I7 3W1 3W2 3W3 3W4 3W5 3W6 3W7
                        """);
    }

    @Test
    void h1AndH2RunWithFewerMicroBatchesThanRanks() {
        var shape = PipelineShape.of(3, 2);

        assertThat(table(ZeroBubbleH1.schedule(shape)))
                .isEqualTo(
                        """
                        rank 0 | 0F0 0F1 .   .   .   0I0 0W0 0I1 0W1
                        rank 1 | .   1F0 1F1 .   1I0 .   1I1 1W0 1W1
                        rank 2 | .   .   2F0 2I0 2F1 2I1 2W0 2W1 .
                        """);
        assertThat(table(ZeroBubbleH2.schedule(shape)))
                .isEqualTo(
                        """
                        rank 0 | 0F0 0F1 .   .   .   0I0 0W0 0I1 0W1
                        rank 1 | .   1F0 1F1 .   1I0 .   1I1 1W0 1W1
                        rank 2 | .   .   2F0 2I0 2F1 2I1 2W0 2W1 .
                        """);
    }

    @Test
    void h1IsOneForwardOneBackwardAlsoInSlices() {
        for (int slices = 1; slices <= 4; slices++) {
            var shape = PipelineShape.of(4, 5, slices);

            assertThat(merged(ZeroBubbleH1.schedule(shape)))
                    .isEqualTo(ops(Seq1F1B.schedule(shape)));
        }
    }

    @Test
    void h1HoldsWeightsBackByAsManyUnitsAsRanksAbove() {
        Schedule schedule = ZeroBubbleH1.schedule(PipelineShape.of(3, 2, 2));

        assertThat(table(schedule))
                .isEqualTo(
                        """
                        rank 0 | 0F0s0 0F0s1 0F1s0 0F1s1 .     .     0I0s1 0W0s1 0I0s0 0W0s0 0I1s1 0W1s1 0I1s0 0W1s0
                        rank 1 | .     1F0s0 1F0s1 1F1s0 .     1I0s1 1F1s1 1I0s0 1W0s1 1I1s1 1W0s0 1I1s0 1W1s1 1W1s0
                        rank 2 | .     .     2F0s0 2F0s1 2I0s1 2F1s0 2I0s0 2F1s1 2I1s1 2W0s1 2I1s0 2W0s0 2W1s1 2W1s0
                        """);
    }

    @Test
    void interleavedTakesTheChunksInTurn() {
        var shape = new PipelineShape(3, 2, 3, List.of(1));

        assertThat(table(InterleavedZeroBubble.schedule(shape, OptionalInt.empty())))
                .isEqualTo(
                        """
                        rank 0 | 0F0 0F1 0F2 3F0 3F1 3F2 .   .   3I0 3W0 3I1 3W1 3I2 3W2 0I0 0W0 0I1 0W1 0I2 0W2
                        rank 1 | .   1F0 1F1 1F2 4F0 4F1 .   4I0 4F2 4I1 4W0 4I2 4W1 1I0 4W2 1I1 1W0 1I2 1W1 1W2
                        rank 2 | .   .   2F0 2F1 2F2 5F0 5I0 5F1 5I1 5F2 5I2 5W0 2I0 5W1 2I1 5W2 2I2 2W0 2W1 2W2
                        """);
    }

    @Test
    void interleavedWithOneChunkIsH1() {
        for (int microBatches = 1; microBatches <= 9; microBatches++) {
            var shape = PipelineShape.of(3, microBatches);

            assertThat(
                            InterleavedZeroBubble.schedule(shape, OptionalInt.of(microBatches))
                                    .programs())
                    .isEqualTo(ZeroBubbleH1.schedule(shape).programs());
        }
    }

    @Test
    void interleavedTakesAnyLegalGroup() {
        var shape = new PipelineShape(4, 2, 12, List.of(1));

        for (int group : new int[] {4, 6, 12}) {
            Schedule schedule = InterleavedZeroBubble.schedule(shape, OptionalInt.of(group));

            ScheduleValidator.validate(
                            schedule, Conditions.training().withPeakUnitsLimit(group + 4))
                    .orThrow();
            assertThat(schedule.program(0).ops().get(group))
                    .isEqualTo(new Op.Forward(new WorkUnit(4, 0, 0)));
        }
    }

    @Test
    void interleavedSaysWhichGroupsAndMicroBatchesWouldDo() {
        var twelve = new PipelineShape(4, 2, 12, List.of(1));
        var nine = new PipelineShape(4, 2, 9, List.of(1));

        assertThatThrownBy(() -> InterleavedZeroBubble.schedule(twelve, OptionalInt.of(3)))
                .hasMessage(
                        "interleaved-zb on 4 ranks cannot part 12 micro-batches into groups of 3; try groups of 4, 6 or 12");
        assertThatThrownBy(() -> InterleavedZeroBubble.schedule(nine, OptionalInt.empty()))
                .hasMessage(
                        "interleaved-zb on 4 ranks cannot part 9 micro-batches into 2 equal groups; try 8 or 10 micro-batches, or groups of 9");
    }

    @Test
    void shapesThatAKindCannotRunAreRefused() {
        var chunked = new PipelineShape(2, 2, 3, List.of(1));
        var sliced = PipelineShape.of(2, 4, 3);

        assertThatThrownBy(() -> ZeroBubbleH1.schedule(chunked))
                .hasMessage("zb-h1 runs one stage per rank, got 2 chunks; try 1");
        assertThatThrownBy(() -> ZeroBubbleH2.schedule(chunked))
                .hasMessage("zb-h2 runs one stage per rank, got 2 chunks; try 1");
        assertThatThrownBy(() -> InterleavedZeroBubble.schedule(sliced, OptionalInt.empty()))
                .hasMessage(
                        "interleaved-zb runs whole sequences, got 3 slices; try 1 slice, or seq1f1b-interleaved");
    }
}
