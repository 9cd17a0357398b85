package dev.penstock.schedules.render;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.generate.Seq1F1B;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.simulate.Timeline;
import java.io.StringReader;
import java.util.List;
import java.util.regex.Pattern;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.Test;
import org.w3c.dom.Document;
import org.xml.sax.InputSource;

class PicturesTest {
    private static final Schedule LOWERED =
            Lowering.lower(Seq1F1B.schedule(PipelineShape.of(2, 2, 2)));

    /** Every op takes 2 ms, one after the other on each rank, with a gap of 1 ms. */
    private static Timeline measured(long origin) {
        var starts = new long[2][];
        var ends = new long[2][];
        for (int rank = 0; rank < 2; rank++) {
            int ops = LOWERED.program(rank).ops().size();
            starts[rank] = new long[ops];
            ends[rank] = new long[ops];
            for (int i = 0; i < ops; i++) {
                starts[rank][i] = origin + i * 3_000_000L;
                ends[rank][i] = starts[rank][i] + 2_000_000L;
            }
        }
        return Timeline.measured(LOWERED, starts, ends);
    }

    @Test
    void theSvgShowsEveryComputationOfEveryPanelWithItsName() throws Exception {
        Timeline simulated = ScheduleSimulator.simulate(LOWERED, CostModel.unit());

        String svg =
                ScheduleSvg.draw(
                        TimelinePanel.units("<simulated> & dreamt", simulated),
                        TimelinePanel.nanos("measured", measured(77)));

        Document document =
                DocumentBuilderFactory.newInstance()
                        .newDocumentBuilder()
                        .parse(new InputSource(new StringReader(svg)));
        assertThat(document.getDocumentElement().getTagName()).isEqualTo("svg");
        assertThat(count(svg, "class=\"forward\".*<title>")).isEqualTo(2 * 2 * 4);
        assertThat(count(svg, "class=\"backward\".*<title>")).isEqualTo(2 * 2 * 4);
        assertThat(count(svg, "class=\"receive\".*<title>")).as("measured only").isEqualTo(8);
        assertThat(svg)
                .contains("<title>1B1s0</title>")
                .contains("&lt;simulated&gt; &amp; dreamt: 15 units, bubble 20.0 %")
                .contains("measured: 47.00 ms, bubble 66.0 %");
    }

    @Test
    void theTraceHoldsEveryOpOnTheClockOfItsProcess() {
        String json =
                ChromeTrace.json(
                        List.of(
                                TimelinePanel.nanos("a \"run\"", measured(1_000_000)),
                                TimelinePanel.nanos("a \"run\"", measured(101_000_000))));

        assertThat(count(json, "\"ph\":\"X\"")).isEqualTo(2 * 2 * 16);
        assertThat(json)
                .contains("\"args\":{\"name\":\"a \\\"run\\\"\"}")
                .contains("\"args\":{\"name\":\"rank 1\"}")
                .contains(
                        "{\"name\":\"0F0s0\",\"cat\":\"forward\",\"ph\":\"X\",\"pid\":1,\"tid\":0,"
                                + "\"ts\":0.000,\"dur\":2000.000,"
                                + "\"args\":{\"stage\":0,\"microBatch\":0,\"slice\":0}}")
                .contains("\"ts\":100000.000");
        assertThat(json.chars().filter(c -> c == '{').count())
                .isEqualTo(json.chars().filter(c -> c == '}').count());
    }

    @Test
    void theTraceNamesTheStageOfOpsThatHaveNoMicroBatchOfTheirOwn() {
        Schedule schedule =
                ScheduleText.parse(
                        """
                        ranks: 1
                        micro-batches: 2
                        rank 0: 0UNSHARD 0F0 (0F1;0B0)OVERLAP_F_B 0B1 0RESHARD 0REDUCE_GRAD
                        """);

        String json =
                ChromeTrace.json(
                        List.of(
                                TimelinePanel.units(
                                        "simulated",
                                        ScheduleSimulator.simulate(schedule, CostModel.unit()))));

        assertThat(json.lines().filter(line -> line.endsWith("\"args\":{\"stage\":0}},")))
                .as("gather, pair, release")
                .hasSize(3);
        assertThat(json)
                .containsPattern("0REDUCE_GRAD.*\"args\":\\{\"stage\":0}}")
                .contains("\"args\":{\"stage\":0,\"microBatch\":1}}")
                .contains("\"ts\":1000.000");
    }

    private static long count(String text, String pattern) {
        return Pattern.compile(pattern).matcher(text).results().count();
    }
}
