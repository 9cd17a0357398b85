package dev.penstock.schedules.render;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.schedules.generate.Seq1F1B;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.render.SvgPicture.Box;
import dev.penstock.schedules.render.SvgPicture.Words;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.simulate.Timeline;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Every box is where its times put it, on one scale. The times below count from the first op. */
class ScheduleSvgGeometryTest {
    private static final Schedule LOWERED =
            ScheduleText.parse(
                    """
                    ranks: 2
                    micro-batches: 1
                    rank 0: 0F0 0SEND_F0 0RECV_B0 0B0
                    rank 1: 1RECV_F0 1F0 1B0 1SEND_B0
                    """);
    private static final String ONE_RANK =
            """
            ranks: 1
            micro-batches: 2
            rank 0: %s
            """;
    private static final long[][] STARTS = {{0, 200, 240, 700}, {0, 240, 440, 660}};
    private static final long[][] ENDS = {{200, 240, 700, 1000}, {240, 440, 660, 700}};
    private static final double HALF_PIXEL = 0.51;

    private static TimelinePanel panel(String title, long factor) {
        long origin = 5_000;
        return TimelinePanel.nanos(
                title,
                Timeline.measured(
                        LOWERED, times(STARTS, origin, factor), times(ENDS, origin, factor)));
    }

    private static long[][] times(long[][] times, long origin, long factor) {
        return Stream.of(times)
                .map(rank -> Arrays.stream(rank).map(t -> origin + factor * t).toArray())
                .toArray(long[][]::new);
    }

    private static SvgPicture picture(TimelinePanel... panels) throws Exception {
        return SvgPicture.read(ScheduleSvg.draw(panels));
    }

    private static SvgPicture simulated(Schedule schedule) throws Exception {
        return picture(
                TimelinePanel.units(
                        "simulated", ScheduleSimulator.simulate(schedule, CostModel.unit())));
    }

    @Test
    void everyOpStandsAtItsTimeOnTheRowOfItsRank() throws Exception {
        SvgPicture picture = picture(panel("a step", 1));

        assertThat(picture.rows()).hasSize(2);
        for (int rank = 0; rank < 2; rank++) {
            Box row = picture.rows().get(rank);
            for (int i = 0; i < STARTS[rank].length; i++) {
                String name = OpText.print(LOWERED.program(rank).ops().get(i), LOWERED.shape());
                Box box = picture.op(name);
                double left = row.x() + row.width() * STARTS[rank][i] / 1000;
                double right = row.x() + row.width() * ENDS[rank][i] / 1000;
                assertThat(box.x()).as(name).isCloseTo(left, within(HALF_PIXEL));
                assertThat(box.right()).as(name).isCloseTo(right, within(HALF_PIXEL));
                assertThat(box.right()).as("neighbours do not run together").isLessThan(right);
                assertThat(box.middleY()).as(name).isCloseTo(row.middleY(), within(1.0));
            }
        }
    }

    @Test
    void computationsFillTheirRowAndTransfersAreFlat() throws Exception {
        SvgPicture picture = picture(panel("a step", 1));
        double row = picture.rows().getFirst().height();

        assertThat(List.of("0F0", "0B0", "1F0", "1B0"))
                .allSatisfy(op -> assertThat(picture.op(op).height()).isEqualTo(row));
        assertThat(List.of("0SEND_F0", "0RECV_B0", "1RECV_F0", "1SEND_B0"))
                .allSatisfy(op -> assertThat(picture.op(op).height()).isBetween(1.0, row / 2));
    }

    @Test
    void theRowsStandBelowEachOtherUnderTheTitleEachWithItsRank() throws Exception {
        SvgPicture picture = picture(panel("a step", 1));
        Box first = picture.rows().get(0);
        Box second = picture.rows().get(1);

        assertThat(second.y()).isGreaterThan(first.bottom());
        assertThat(second.x()).isEqualTo(first.x());
        Words title =
                picture.words().stream().filter(w -> w.text().startsWith("a step")).toList().get(0);
        assertThat(title.y()).isBetween(legend(picture).getLast().bottom(), first.y());
        for (int rank = 0; rank < 2; rank++) {
            Box row = picture.rows().get(rank);
            Words name = picture.words("rank " + rank);
            assertThat(name.x()).isBetween(0.0, row.x());
            assertThat(name.y()).isBetween(row.y(), row.bottom());
        }
    }

    @Test
    void allPanelsHaveOneTimeScale() throws Exception {
        SvgPicture picture = picture(panel("short", 1), panel("long", 4));
        List<Box> rows = picture.rows();

        assertThat(rows).hasSize(4);
        assertThat(rows.get(0).width()).isCloseTo(rows.get(2).width() / 4, within(HALF_PIXEL));
        assertThat(rows.get(2).right()).isBetween(0.9 * picture.width(), picture.width());
    }

    @Test
    void aPanelMoreMakesThePictureAsMuchHigherAsItMovesDown() throws Exception {
        SvgPicture one = picture(panel("one", 1));
        SvgPicture three = picture(panel("one", 1), panel("two", 1), panel("three", 1));
        List<Box> rows = three.rows();
        double step = rows.get(2).y() - rows.get(0).y();

        assertThat(step).isGreaterThan(rows.get(1).bottom() - rows.get(0).y());
        assertThat(rows.get(4).y() - rows.get(2).y()).isEqualTo(step);
        assertThat(three.height() - one.height()).isEqualTo(2 * step);
    }

    @Test
    void nothingStandsOutsideThePicture() throws Exception {
        SvgPicture picture = picture(panel("one", 1), panel("two", 3));

        assertThat(picture.boxes())
                .allSatisfy(
                        box -> {
                            assertThat(box.x()).isNotNegative();
                            assertThat(box.y()).isNotNegative();
                            assertThat(box.right()).isLessThanOrEqualTo(picture.width());
                            assertThat(box.bottom()).isLessThanOrEqualTo(picture.height());
                        });
        assertThat(picture.words())
                .allSatisfy(
                        words -> {
                            assertThat(words.x()).isBetween(0.0, picture.width());
                            assertThat(words.y()).isBetween(0.0, picture.height());
                        });
    }

    @Test
    void theLegendNamesWhatIsSeenBesideItsColour() throws Exception {
        SvgPicture picture = picture(panel("a step", 1));
        List<Box> legend = legend(picture);

        assertThat(legend.stream().map(Box::style))
                .containsExactly("forward", "backward", "send", "receive", "idle");
        for (int i = 0; i < legend.size(); i++) {
            Box sample = legend.get(i);
            Words name = picture.words(sample.style());
            assertThat(name.x()).isGreaterThan(sample.right());
            assertThat(name.y()).isBetween(sample.y(), sample.bottom());
            if (i + 1 < legend.size() && legend.get(i + 1).y() == sample.y()) {
                assertThat(name.x()).isLessThan(legend.get(i + 1).x());
            }
        }
    }

    @Test
    void aBroadBarShowsItsMicroBatchInItsMiddle() throws Exception {
        SvgPicture picture = simulated(ScheduleText.parse(ONE_RANK.formatted("0F0 0F1 0B0 0B1")));

        for (String op : List.of("0F0", "0F1", "0B0", "0B1")) {
            Box box = picture.op(op);
            assertThat(picture.wordsIn(box)).as(op).containsExactly(op.substring(2));
            Words label = picture.words().stream().filter(box::holds).toList().getFirst();
            assertThat(label.x()).isCloseTo(box.middleX(), within(HALF_PIXEL));
            assertThat(label.y()).isBetween(box.middleY(), box.bottom());
            assertThat(label.style().split(" ")).contains("on", box.style());
        }
    }

    @Test
    void whereSequencesAreCutTheLabelNamesTheSliceToo() throws Exception {
        SvgPicture picture = simulated(Seq1F1B.schedule(PipelineShape.of(1, 1, 2)));

        assertThat(picture.wordsIn(picture.op("0F0s1"))).containsExactly("0.1");
    }

    @Test
    void anOverlappedPairIsItsForwardAboveItsBackwardEachWithItsMicroBatch() throws Exception {
        SvgPicture picture =
                simulated(ScheduleText.parse(ONE_RANK.formatted("0F0 (0F1;0B0)OVERLAP_F_B 0B1")));

        List<Box> halves =
                picture.boxes().stream()
                        .filter(b -> b.name().equals("(0F1;0B0)OVERLAP_F_B"))
                        .toList();

        assertThat(halves).extracting(Box::style).containsExactly("forward", "backward");
        assertThat(halves.getFirst().bottom()).isEqualTo(halves.getLast().y());
        assertThat(halves.getFirst().y()).isEqualTo(picture.rows().getFirst().y());
        assertThat(halves.getLast().bottom()).isEqualTo(picture.rows().getFirst().bottom());
        assertThat(picture.wordsIn(halves.getFirst())).containsExactly("1");
        assertThat(picture.wordsIn(halves.getLast())).containsExactly("0");
    }

    @Test
    void transfersAndNarrowBarsHaveNoLabel() throws Exception {
        SvgPicture picture = picture(panel("narrow", 1), panel("broad", 100));
        List<Box> receives =
                picture.boxes().stream().filter(b -> b.name().equals("0RECV_B0")).toList();
        List<Box> forwards = picture.boxes().stream().filter(b -> b.name().equals("0F0")).toList();

        assertThat(receives).hasSize(2).allSatisfy(b -> assertThat(picture.wordsIn(b)).isEmpty());
        assertThat(picture.wordsIn(forwards.get(0))).isEmpty();
        assertThat(picture.wordsIn(forwards.get(1))).containsExactly("0");
        assertThat(forwards.get(0).width()).as("still to be seen").isGreaterThan(0.2);
    }

    @Test
    void opsWithoutDurationAreNotDrawn() throws Exception {
        SvgPicture picture = simulated(LOWERED);

        assertThat(picture.boxes().stream().map(Box::name).filter(n -> !n.isEmpty()))
                .as("transfers cost nothing")
                .containsExactlyInAnyOrder("0F0", "0B0", "1F0", "1B0");
    }

    @Test
    void aStepWithoutTimeIsAnEmptyPicture() throws Exception {
        SvgPicture picture = picture(panel("nothing", 0));

        assertThat(picture.rows()).hasSize(2).allSatisfy(r -> assertThat(r.width()).isZero());
    }

    /** The samples of the colours, from left to right. */
    private static List<Box> legend(SvgPicture picture) {
        double top = picture.rows().getFirst().y();
        return picture.boxes().stream().filter(b -> b.y() < top && b.name().isEmpty()).toList();
    }
}
