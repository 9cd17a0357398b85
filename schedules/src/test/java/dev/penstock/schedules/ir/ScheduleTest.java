package dev.penstock.schedules.ir;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.junit.jupiter.api.Test;

class ScheduleTest {
    private static final PipelineShape SHAPE = PipelineShape.of(2, 1);
    private static final Placement PLACEMENT = Placement.loop(2, 1);
    private static final List<RankProgram> EMPTY =
            List.of(new RankProgram(0, List.of()), new RankProgram(1, List.of()));

    @Test
    void partsThatDoNotFitAreRefused() {
        assertThatThrownBy(() -> new Schedule("a#b", SHAPE, PLACEMENT, EMPTY))
                .hasMessageContaining("name");
        assertThatThrownBy(() -> new Schedule("a, b", SHAPE, PLACEMENT, EMPTY))
                .hasMessageContaining("name");
        for (List<Integer> group : List.of(List.of(0), List.of(0, 0), List.of(0, 2))) {
            assertThatThrownBy(() -> new Schedule("x", SHAPE, PLACEMENT, EMPTY, List.of(group)))
                    .hasMessageContaining("stages 0 to 1 share parameters")
                    .hasMessageContaining(group.toString());
        }
        assertThatThrownBy(() -> new Schedule("x", SHAPE, PLACEMENT, EMPTY.subList(0, 1)))
                .hasMessageContaining("2 ranks need a program each, got 1");
        assertThatThrownBy(() -> new Schedule("x", SHAPE, PLACEMENT, EMPTY.reversed()))
                .hasMessageContaining("program 0 must be that of rank 0");
        assertThatThrownBy(() -> new Schedule("x", SHAPE, Placement.loop(2, 2), EMPTY))
                .hasMessageContaining("have 2 stages, but 4 are placed");
        assertThatThrownBy(() -> new Schedule("x", SHAPE, new Placement(List.of(0, 2)), EMPTY))
                .hasMessageContaining("ranks 0 to 1, got rank 2");
    }

    @Test
    void unitsAreNumberedDensely() {
        var shape = new PipelineShape(2, 2, 3, List.of(5, 4));

        for (int i = 0; i < shape.units(); i++) {
            assertThat(shape.indexOf(shape.unitAt(i))).isEqualTo(i);
            assertThat(shape.contains(shape.unitAt(i))).isTrue();
        }
        assertThat(shape.units()).isEqualTo(24);
        assertThat(shape.contains(new WorkUnit(4, 0, 0))).isFalse();
        assertThat(shape.contains(new WorkUnit(0, 3, 0))).isFalse();
        assertThat(shape.contains(new WorkUnit(0, 0, 2))).isFalse();
    }

    @Test
    void neighboursOnOneRankNeedNoTransfer() {
        var vShaped = new Placement(List.of(0, 1, 1, 0));

        assertThat(vShaped.crossesBefore(0)).isFalse();
        assertThat(vShaped.crossesAfter(0)).isTrue();
        assertThat(vShaped.crossesBefore(2)).isFalse();
        assertThat(vShaped.crossesAfter(1)).isFalse();
        assertThat(vShaped.crossesAfter(3)).isFalse();
        assertThat(vShaped.stagesOf(0)).containsExactly(0, 3);
    }

    @Test
    void impossibleSizesAreRefused() {
        assertThatThrownBy(() -> PipelineShape.of(0, 1)).hasMessageContaining("at least 1 rank");
        assertThatThrownBy(() -> new PipelineShape(1, 1, 1, List.of(3, 0)))
                .hasMessageContaining("length of at least 1, got [3, 0]");
    }
}
