package dev.penstock.schedules.render;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.generate.OneForwardOneBackward;
import dev.penstock.schedules.generate.vshaped.DualPipeV;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.simulate.Timeline;
import java.util.List;
import org.junit.jupiter.api.Test;

class ScheduleGridTest {
    private static final Schedule SCHEDULE = OneForwardOneBackward.schedule(PipelineShape.of(2, 2));

    @Test
    void theOrderIsAlignedByOp() {
        assertThat(ScheduleGrid.order(Lowering.lower(SCHEDULE), GridColors.NONE))
                .isEqualTo(
                        """
                        rank 0 | 0F0      0SEND_F0 0F1      0SEND_F1 0RECV_B0 0B0      0RECV_B1 0B1
                        rank 1 | 1RECV_F0 1F0      1B0      1SEND_B0 1RECV_F1 1F1      1B1      1SEND_B1
                        """);
    }

    @Test
    void longOpsSpanColumnsOfTheCommonMeasure() {
        var timeline = ScheduleSimulator.simulate(SCHEDULE, CostModel.of(10, 20, 0));

        assertThat(ScheduleGrid.time(timeline, GridColors.NONE))
                .isEqualTo(
                        """
                        rank 0 | 0F0 0F1 .   .   0B0 -   .   0B1 -
                        rank 1 | .   1F0 1B0 -   1F1 1B1 -   .   .
                        """);
    }

    @Test
    void aLongTimelineIsScaledDown() {
        var timeline = ScheduleSimulator.simulate(SCHEDULE, CostModel.of(1_000_003, 999_999, 0));

        String grid = ScheduleGrid.time(timeline, GridColors.NONE);

        assertThat(grid.lines().toList())
                .allSatisfy(line -> assertThat(line.length()).isBetween(1200, 1700));
        assertThat(grid).contains("0F0", "1B1");
    }

    @Test
    void aMeasuredStepIsDrawnFromItsFirstStart() {
        Schedule schedule =
                ScheduleText.parse(
                        """
                        ranks: 2
                        micro-batches: 1
                        rank 0: 0F0 0B0
                        rank 1: 1F0 1B0
                        """);
        var timeline =
                Timeline.measured(
                        schedule,
                        new long[][] {{1_003, 1_018}, {1_008, 1_013}},
                        new long[][] {{1_008, 1_028}, {1_013, 1_018}});

        assertThat(ScheduleGrid.time(timeline, GridColors.NONE))
                .isEqualTo(
                        """
                        rank 0 | 0F0 .   .   0B0 -
                        rank 1 | .   1F0 1B0 .   .
                        """);
    }

    @Test
    void atMostFourHundredColumnsAreDrawn() {
        Schedule schedule = ScheduleText.parse("ranks: 1\nmicro-batches: 1\nrank 0: 0F0 0B0\n");
        var fits = ScheduleSimulator.simulate(schedule, CostModel.of(399, 1, 0));
        var longer = ScheduleSimulator.simulate(schedule, CostModel.of(400, 1, 0));

        assertThat(columns(fits)).isEqualTo(400);
        assertThat(columns(longer)).as("two units a column").isEqualTo(201);
    }

    private static int columns(Timeline timeline) {
        String row = ScheduleGrid.time(timeline, GridColors.NONE).strip();
        return row.substring(row.indexOf('|') + 1).strip().split(" +").length;
    }

    @Test
    void theRankNumbersEndInOneColumn() {
        Schedule schedule = OneForwardOneBackward.schedule(PipelineShape.of(11, 1));

        assertThat(ScheduleGrid.order(schedule, GridColors.NONE).lines().skip(9))
                .containsExactly("rank  9 | 9F0  9B0", "rank 10 | 10F0 10B0");
    }

    @Test
    void colourChangesNothingThatIsSeen() {
        Schedule lowered = Lowering.lower(SCHEDULE);
        Schedule pairs = DualPipeV.schedule(new PipelineShape(2, 2, 4, List.of(1)));
        var timeline = ScheduleSimulator.simulate(pairs, CostModel.split(1, 1, 1, 0));

        String order = ScheduleGrid.order(lowered, GridColors.ANSI);
        String time = ScheduleGrid.time(timeline, GridColors.ANSI);

        assertThat(seen(order))
                .isEqualTo(ScheduleGrid.order(lowered, GridColors.NONE))
                .isNotEqualTo(order);
        assertThat(seen(time))
                .isEqualTo(ScheduleGrid.time(timeline, GridColors.NONE))
                .isNotEqualTo(time);
    }

    @Test
    void aCellIsColouredByItselfAndIdleTimeNotAtAll() {
        var timeline = ScheduleSimulator.simulate(SCHEDULE, CostModel.of(10, 20, 0));

        String rank1 = ScheduleGrid.time(timeline, GridColors.ANSI).lines().toList().getLast();

        assertThat(rank1)
                .startsWith(
                        "rank 1 | .   \u001b[38;5;33m1F0\u001b[0m \u001b[1;38;5;172m1B0\u001b[0m"
                                + " \u001b[1;38;5;172m-\u001b[0m   \u001b[38;5;33m1F1\u001b[0m ")
                .endsWith(" .   .");
    }

    @Test
    void kindsOfComputationsAndTransfersDifferInColour() {
        assertThat(OpClass.values())
                .filteredOn(kind -> kind != OpClass.RELEASE)
                .extracting(kind -> GridColors.ANSI.paint(kind, "op"))
                .doesNotHaveDuplicates();
    }

    @Test
    void aTimelineWithoutLengthHasNoColumns() {
        var timeline = ScheduleSimulator.simulate(SCHEDULE, CostModel.of(0, 0, 0));

        assertThat(ScheduleGrid.time(timeline, GridColors.ANSI)).isEqualTo("rank 0 |\nrank 1 |\n");
    }

    private static String seen(String text) {
        return text.replaceAll("\u001b\\[[0-9;]*m", "");
    }
}
