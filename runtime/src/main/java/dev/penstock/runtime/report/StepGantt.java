package dev.penstock.runtime.report;

import dev.penstock.actors.spi.RankStep;
import dev.penstock.runtime.metrics.Activity;
import dev.penstock.runtime.metrics.Quantities;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.simulate.Timeline;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/**
 * Steps above each other on one time scale as SVG: a lane per rank, a bar per op. Very large steps
 * lose the names of their bars, not the bars. Colours come from {@code chart.css} and {@code
 * palette.css}.
 */
final class StepGantt {
    /** More ops than this are drawn without names, so that the file stays small. */
    private static final int MOST_NAMED_OPS = 6000;

    private static final int WIDTH = 960;
    private static final int LEFT = 64;
    private static final int RIGHT = 16;
    private static final int LEGEND_HEIGHT = 30;
    private static final int HEADING_HEIGHT = 28;
    private static final int PANEL_GAP = 8;
    private static final int AXIS_HEIGHT = 38;

    private final List<Panel> panels;
    private final int laneHeight;
    private final int laneGap;
    private final long longestNanos;
    private final boolean named;

    /**
     * One step.
     *
     * @param heading what it is
     * @param updates the ranks whose optimizer is shown, with its times
     * @param numbers entry p is what the rank of program p is called
     */
    record Panel(String heading, Timeline timeline, List<RankStep> updates, List<Integer> numbers) {
        Panel {
            updates = List.copyOf(updates);
            numbers = List.copyOf(numbers);
        }
    }

    StepGantt(List<Panel> panels) {
        this.panels = List.copyOf(panels);
        int most = panels.stream().mapToInt(StepGantt::ranks).max().orElse(1);
        int all = panels.stream().mapToInt(StepGantt::ranks).sum();
        int ranks = Math.max(most, all / 2); // two panels are usual
        this.laneHeight = ranks <= 8 ? 26 : ranks <= 20 ? 16 : ranks <= 40 ? 10 : 6;
        this.laneGap = laneHeight >= 16 ? 4 : 1;
        this.longestNanos = panels.stream().mapToLong(StepGantt::nanos).max().orElse(1);
        this.named = panels.stream().mapToInt(StepGantt::ops).sum() <= MOST_NAMED_OPS;
    }

    /** A whole SVG file. */
    String file() {
        return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                + svg(
                        "<style>"
                                + Markup.resource("palette.css")
                                + Markup.resource("chart.css")
                                + "</style>");
    }

    /** The picture as part of a page that holds {@code chart.css}. */
    String inline() {
        return svg("");
    }

    /**
     * The picture as a table, for those who do not see it: a row for each rank, with its ops in
     * their order as far as the picture names them.
     */
    String table() {
        StringBuilder table =
                new StringBuilder(
                        "<details><summary>The step as a table</summary><div class=\"scroll\"><table><tr><th scope=\"col\">step</th><th scope=\"col\">rank</th><th scope=\"col\">first op begins</th><th scope=\"col\">last op ends</th><th scope=\"col\">optimizer</th><th scope=\"col\">ops in their order, each with what it took</th></tr>");
        for (Panel panel : panels) {
            for (RankProgram program : panel.timeline().schedule().programs()) {
                appendRow(table, panel, program);
            }
        }
        return table.append("</table></div></details>").toString();
    }

    private void appendRow(StringBuilder table, Panel panel, RankProgram program) {
        Timeline timeline = panel.timeline();
        int rank = program.rank();
        int last = program.ops().size() - 1;
        table.append("<tr>")
                .append(ReportTables.cell(panel.heading()))
                .append("<th scope=\"row\">%d</th>".formatted(panel.numbers().get(program.rank())))
                .append(
                        ReportTables.cell(
                                last < 0 ? "-" : at(timeline, timeline.startNanos(rank, 0))))
                .append(
                        ReportTables.cell(
                                last < 0 ? "-" : at(timeline, timeline.endNanos(rank, last))))
                .append(
                        ReportTables.cell(
                                panel.updates().stream()
                                        .filter(update -> update.rank() == rank)
                                        .map(StepGantt::took)
                                        .findFirst()
                                        .orElse("-")))
                .append(ReportTables.cell(named ? ops(timeline, program) : last + 1 + " ops"))
                .append("</tr>");
    }

    private static String ops(Timeline timeline, RankProgram program) {
        List<String> ops = new ArrayList<>();
        for (int i = 0; i < program.ops().size(); i++) {
            ops.add(
                    OpText.print(program.ops().get(i), timeline.schedule().shape())
                            + " "
                            + Quantities.nanos(
                                    timeline.endNanos(program.rank(), i)
                                            - timeline.startNanos(program.rank(), i)));
        }
        return String.join(", ", ops);
    }

    private static String at(Timeline timeline, long nanos) {
        return Quantities.nanos(nanos - timeline.startNanos());
    }

    private static String took(RankStep update) {
        return Quantities.nanos(update.updateEndNanos() - update.updateStartNanos());
    }

    private String svg(String style) {
        int height = LEGEND_HEIGHT + AXIS_HEIGHT;
        for (Panel panel : panels) {
            height += HEADING_HEIGHT + lanesHeight(panel) + PANEL_GAP;
        }
        StringBuilder svg = new StringBuilder();
        svg.append(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"gantt\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">%s"
                        .formatted(WIDTH, height, Markup.escape(spoken()), style));
        svg.append("<rect class=\"paper\" width=\"%d\" height=\"%d\"/>".formatted(WIDTH, height));
        appendLegend(svg);
        int top = LEGEND_HEIGHT;
        for (Panel panel : panels) {
            appendPanel(svg, panel, top);
            top += HEADING_HEIGHT + lanesHeight(panel) + PANEL_GAP;
        }
        appendAxis(svg, height);
        return svg.append("</svg>\n").toString();
    }

    private void appendPanel(StringBuilder svg, Panel panel, int top) {
        svg.append(
                "<text class=\"heading\" x=\"8\" y=\"%d\">%s</text>"
                        .formatted(top + 18, Markup.escape(panel.heading())));
        int lanesTop = top + HEADING_HEIGHT;
        Timeline timeline = panel.timeline();
        for (RankProgram program : timeline.schedule().programs()) {
            GanttLane lane = lane(timeline, program.rank(), lanesTop);
            appendLaneFrame(svg, program.rank(), panel.numbers().get(program.rank()), lane.top());
            if (named) {
                lane.appendNamed(svg);
            } else {
                lane.appendPlain(svg);
            }
        }
        for (RankStep update : panel.updates()) {
            lane(timeline, update.rank(), lanesTop).appendUpdate(svg, update);
        }
        double end = LEFT + timeline.makespanNanos() * scale();
        svg.append(
                Quantities.format(
                        "<line class=\"end\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>",
                        end, end, lanesTop - 4, lanesTop + lanesHeight(panel)));
    }

    private GanttLane lane(Timeline timeline, int rank, int lanesTop) {
        int top = lanesTop + rank * (laneHeight + laneGap);
        return new GanttLane(timeline, rank, scale(), LEFT, top, laneHeight);
    }

    private void appendLaneFrame(StringBuilder svg, int lane, int rank, int top) {
        svg.append(
                "<rect class=\"lane\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>"
                        .formatted(LEFT, top, WIDTH - LEFT - RIGHT, laneHeight));
        if (laneHeight >= 10 || lane % 8 == 0) {
            svg.append(
                    "<text class=\"tick\" text-anchor=\"end\" x=\"%d\" y=\"%d\">rank %d</text>"
                            .formatted(LEFT - 8, top + laneHeight / 2 + 4, rank));
        }
    }

    private void appendAxis(StringBuilder svg, int height) {
        AxisTicks ticks = AxisTicks.between(0, longestNanos / 1e6, 9);
        for (int i = 0; i < ticks.values().size(); i++) {
            double x = LEFT + ticks.values().get(i) * 1e6 * scale();
            svg.append(
                    Quantities.format(
                            "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>",
                            x, x, height - AXIS_HEIGHT - 2, height - AXIS_HEIGHT + 4));
            svg.append(
                    Quantities.format(
                            "<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\""
                                    + " y=\"%d\">%s</text>",
                            x, height - AXIS_HEIGHT + 18, ticks.labels().get(i)));
        }
        svg.append(
                "<text class=\"label\" text-anchor=\"middle\" x=\"%d\" y=\"%d\">milliseconds since the first op</text>"
                        .formatted((LEFT + WIDTH - RIGHT) / 2, height - 4));
    }

    private void appendLegend(StringBuilder svg) {
        int at = 8;
        for (Activity activity : shown()) {
            boolean tall = GanttLane.TALL.contains(activity);
            svg.append(
                    "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"14\" height=\"%d\"/>"
                            .formatted(activity.label(), at, tall ? 6 : 10, tall ? 12 : 4));
            String said = GanttLane.said(activity);
            svg.append(
                    "<text class=\"legend\" x=\"%d\" y=\"16\">%s</text>".formatted(at + 19, said));
            at += 19 + 7 * said.length() + 16;
        }
    }

    private Set<Activity> shown() {
        Set<Activity> shown = EnumSet.noneOf(Activity.class);
        for (Panel panel : panels) {
            for (RankProgram program : panel.timeline().schedule().programs()) {
                program.ops().forEach(op -> shown.add(Activity.of(op)));
            }
            if (!panel.updates().isEmpty()) {
                shown.add(Activity.UPDATE);
            }
        }
        return shown;
    }

    private double scale() {
        return (double) (WIDTH - LEFT - RIGHT) / longestNanos;
    }

    private int lanesHeight(Panel panel) {
        return ranks(panel) * (laneHeight + laneGap);
    }

    private String spoken() {
        List<String> steps =
                panels.stream()
                        .map(
                                panel ->
                                        panel.heading()
                                                + " takes "
                                                + Quantities.nanos(
                                                        panel.timeline().makespanNanos()))
                        .toList();
        return "Gantt chart. " + String.join("; ", steps);
    }

    private static int ranks(Panel panel) {
        return panel.timeline().schedule().programs().size();
    }

    private static int ops(Panel panel) {
        return panel.timeline().schedule().programs().stream()
                .mapToInt(program -> program.ops().size())
                .sum();
    }

    /** The length of a step with its optimizer. */
    private static long nanos(Panel panel) {
        long start = panel.timeline().startNanos();
        long end = start + panel.timeline().makespanNanos();
        for (RankStep update : panel.updates()) {
            end = Math.max(end, update.updateEndNanos());
        }
        return Math.max(1, end - start);
    }
}
