package dev.penstock.schedules.render;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.generate.GPipe;
import dev.penstock.schedules.generate.OneForwardOneBackward;
import dev.penstock.schedules.generate.base.BackwardOrder;
import dev.penstock.schedules.generate.vshaped.DualPipeV;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.GatherSettings;
import dev.penstock.schedules.lower.InsertRecompute;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.lower.LoweringOptions;
import dev.penstock.schedules.lower.ParameterResidency;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.simulate.UnitCosts;
import java.io.StringReader;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.Test;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.xml.sax.InputSource;

/** What the picture shows of each rank beside its ops, and the legend. */
class ScheduleSvgTest {
    /** Over 9 units: 0F0 0F1 . . 0B0 - . 0B1 - above . 1F0 1B0 - 1F1 1B1 - . . */
    private static final Schedule SMALL = OneForwardOneBackward.schedule(PipelineShape.of(2, 2));

    private static final int BAR = 22;

    private static TimelinePanel panel(Schedule schedule, CostModel costs) {
        return TimelinePanel.units(schedule.name(), ScheduleSimulator.simulate(schedule, costs));
    }

    private static TimelinePanel panel(Schedule schedule) {
        return panel(schedule, CostModel.unit());
    }

    @Test
    void theLegendNamesWhatOccursAndNothingElse() throws Exception {
        assertThat(legend(panel(SMALL)))
                .containsExactly("forward", "backward", "idle", "activations held");
        assertThat(legend(panel(SMALL, CostModel.of(1, 0, 0))))
                .as("what takes no time is not seen")
                .containsExactly("forward", "idle", "activations held");
        assertThat(
                        legend(
                                panel(
                                        DualPipeV.schedule(new PipelineShape(2, 2, 4, List.of(1))),
                                        CostModel.split(1, 1, 1, 0))))
                .contains(
                        "backward for the input",
                        "backward for the weights",
                        "two computations at once");
        assertThat(legend(panel(InsertRecompute.into(SMALL), UnitCosts.parse("recompute=1"))))
                .contains("forward once more");
    }

    @Test
    void everyKindHasAColourAndWords() {
        String svg = ScheduleSvg.draw(panel(SMALL));

        assertThat(OpClass.values())
                .allSatisfy(kind -> assertThat(kind.label()).matches("[a-z]+(-[a-z]+)?"))
                .filteredOn(kind -> kind != OpClass.OVERLAPPED)
                .allSatisfy(kind -> assertThat(svg).contains("rect." + kind.label()));
        assertThat(OpClass.values()).extracting(OpClass::words).doesNotHaveDuplicates();
    }

    @Test
    void theMemoryOfARankRisesWithItsForwardsAndFallsWithItsBackwards() throws Exception {
        assertThat(curves(panel(SMALL)))
                .containsExactly(
                        "M70.00 105H70.00V97.00H182.22V89.00H743.33V97.00H1080.00V105.00H1080.00V105",
                        "M70.00 154H182.22V146.00H855.56V154.00H1080.00V154");
    }

    @Test
    void everyRankHasItsBubbleAndItsPeak() throws Exception {
        assertThat(texts(panel(SMALL)))
                .containsSubsequence(
                        "rank 0", "bubble 33.3 %", "peak 2", "rank 1", "bubble 33.3 %", "peak 1");
    }

    @Test
    void panelsShareOneTimeScaleAndOneMemoryScale() throws Exception {
        Schedule four = GPipe.schedule(PipelineShape.of(1, 4), BackwardOrder.FIFO);
        Schedule two = GPipe.schedule(PipelineShape.of(1, 2), BackwardOrder.FIFO);

        List<String> curves = curves(panel(four), panel(two));

        assertThat(curves.getFirst()).startsWith("M70.00 105").contains("V89.00");
        // a title of 34 and a row of 49 further down
        assertThat(curves.getLast())
                .startsWith("M70.00 188")
                .contains("V180.00")
                .doesNotContain("V172.00")
                .endsWith("H575.00V188");
    }

    @Test
    void gathersAndReductionsLieBelowTheComputationsThatTheyRunBeside() throws Exception {
        LoweringOptions sharded =
                LoweringOptions.plain()
                        .withGathers(new GatherSettings(ParameterResidency.PER_PASS, 1));
        TimelinePanel panel =
                panel(Lowering.lower(SMALL, sharded), UnitCosts.parse("gather=1,reduce=1"));

        List<Element> gathers =
                rects(panel).filter(r -> r.getAttribute("class").equals("gather")).toList();

        double bar = number(rects(panel, "0F0").findFirst().orElseThrow(), "y");
        assertThat(gathers).as("one per rank").hasSize(2);
        assertThat(number(gathers.getFirst(), "y")).isEqualTo(bar + BAR + 1);
        assertThat(gathers).allSatisfy(g -> assertThat(number(g, "height")).isEqualTo(4));
        assertThat(texts(panel))
                .contains("gather of parameters", "parameters gathered")
                .anyMatch(text -> text.matches("peak 2, \\d gathered"));
    }

    @Test
    void aTimelineWithoutLengthIsDrawnWithoutOps() throws Exception {
        TimelinePanel panel = panel(SMALL, CostModel.of(0, 0, 0));

        assertThat(rects(panel, "0F0")).isEmpty();
        assertThat(texts(panel)).contains("bubble 0.0 %", "1f1b: 0 units, bubble 0.0 %");
        assertThat(ScheduleSvg.draw(panel)).doesNotContain("NaN", "Infinity");
    }

    @Test
    void aTitleIsTextWhateverItHolds() throws Exception {
        String title = "\"/><script>alert('&')</script>";
        String svg =
                ScheduleSvg.draw(
                        TimelinePanel.units(title + "\u0000\u001b", panel(SMALL).timeline()));

        Document document = parse(svg);

        assertThat(elements(document, "script")).isEmpty();
        assertThat(document.getDocumentElement().getAttribute("aria-label"))
                .isEqualTo(title + "\uFFFD\uFFFD");
    }

    private static List<String> legend(TimelinePanel... panels) throws Exception {
        return texts(panels).stream().takeWhile(text -> !text.contains(": ")).toList();
    }

    private static List<String> texts(TimelinePanel... panels) throws Exception {
        return elements(parse(ScheduleSvg.draw(panels)), "text")
                .map(Element::getTextContent)
                .toList();
    }

    /** The lines of what ranks hold, without the legend's. */
    private static List<String> curves(TimelinePanel... panels) throws Exception {
        return elements(parse(ScheduleSvg.draw(panels)), "path")
                .filter(path -> path.getTextContent().startsWith("rank"))
                .map(path -> path.getAttribute("d"))
                .toList();
    }

    private static Stream<Element> rects(TimelinePanel panel, String op) throws Exception {
        return rects(panel).filter(rect -> rect.getTextContent().equals(op));
    }

    /** Rectangles of ops. */
    private static Stream<Element> rects(TimelinePanel panel) throws Exception {
        return elements(parse(ScheduleSvg.draw(panel)), "rect")
                .filter(rect -> !rect.getTextContent().isEmpty());
    }

    private static double number(Element element, String attribute) {
        return Double.parseDouble(element.getAttribute(attribute));
    }

    private static Stream<Element> elements(Document document, String tag) {
        var nodes = document.getElementsByTagName(tag);
        return IntStream.range(0, nodes.getLength()).mapToObj(i -> (Element) nodes.item(i));
    }

    private static Document parse(String svg) throws Exception {
        return DocumentBuilderFactory.newInstance()
                .newDocumentBuilder()
                .parse(new InputSource(new StringReader(svg)));
    }
}
