package dev.penstock.schedules.render;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.simulate.BubbleReport;
import dev.penstock.schedules.simulate.Timeline;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/**
 * Timelines as an SVG Gantt chart: a row per rank, a legend, and the bubble of each panel. All
 * panels have one time scale, so a measured step can be compared with the simulated one above it.
 * The colours are those of Okabe and Ito, told apart by colour-blind readers; the page's light or
 * dark background shows through.
 */
public final class ScheduleSvg {
    private static final int WIDTH = 1200;
    private static final int LEFT = 70;
    private static final int RIGHT = 10;
    private static final int ROW = 26;
    private static final int BAR = 22;
    private static final int TITLE = 34;
    private static final int LEGEND = 30;
    private static final int LETTER = 7;

    private static final String STYLE =
            """
            <style>
            text { font: 11px system-ui, sans-serif; fill: #1b1b1b; }
            .title { font-size: 14px; font-weight: 600; }
            .on { fill: #fff; text-anchor: middle; pointer-events: none; }
            .on.backward, .on.backward-weight, .on.overlapped { fill: #1b1b1b; }
            rect.idle { fill: #8883; }
            rect.forward { fill: #0072b2; }
            rect.backward { fill: #e69f00; }
            rect.backward-input { fill: #d55e00; }
            rect.backward-weight { fill: #f0e442; }
            rect.overlapped { fill: #bbb; }
            rect.recompute { fill: #6a8caf; }
            rect.gather { fill: #8c6bb1; }
            rect.release { fill: #8c6bb1; }
            rect.send { fill: #009e73; }
            rect.receive { fill: #56b4e9; fill-opacity: .6; }
            rect.reduce { fill: #cc79a7; }
            @media (prefers-color-scheme: dark) { text { fill: #eee; } }
            </style>
            """;

    private ScheduleSvg() {}

    /** An SVG document with these panels from top to bottom. */
    public static String draw(TimelinePanel... panels) {
        return draw(List.of(panels));
    }

    /** An SVG document with these panels from top to bottom. */
    public static String draw(List<TimelinePanel> panels) {
        long longest = panels.stream().mapToLong(p -> p.timeline().makespanNanos()).max().orElse(0);
        double pixelsPerNano = longest == 0 ? 0 : (double) (WIDTH - LEFT - RIGHT) / longest;
        int height =
                LEGEND
                        + panels.stream()
                                .mapToInt(
                                        p -> TITLE + ROW * p.timeline().schedule().shape().ranks())
                                .sum();
        var svg = new StringBuilder();
        svg.append(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\">\n"
                        .formatted(WIDTH, height));
        svg.append(STYLE);
        legend(svg);
        int top = LEGEND;
        for (TimelinePanel panel : panels) {
            panel(svg, panel, top, pixelsPerNano);
            top += TITLE + ROW * panel.timeline().schedule().shape().ranks();
        }
        return svg.append("</svg>\n").toString();
    }

    private static void legend(StringBuilder svg) {
        int x = LEFT;
        for (OpClass kind : OpClass.values()) {
            rect(svg, kind.label(), x, 8, 14, 14, "");
            text(svg, "", x + 20, 19, kind.label());
            x += 90;
        }
        rect(svg, "idle", x, 8, 14, 14, "");
        text(svg, "", x + 20, 19, "idle");
    }

    private static void panel(
            StringBuilder svg, TimelinePanel panel, int top, double pixelsPerNano) {
        Timeline timeline = panel.timeline();
        BubbleReport bubble = timeline.bubble();
        text(svg, "title", LEFT, top + 20, title(panel, bubble));
        for (RankProgram program : timeline.schedule().programs()) {
            int y = top + TITLE + ROW * program.rank();
            text(svg, "", 10, y + 15, "rank " + program.rank());
            rect(svg, "idle", LEFT, y, timeline.makespanNanos() * pixelsPerNano, BAR, "");
            for (int i = 0; i < timeline.opsRun(program.rank()); i++) {
                op(svg, timeline, program.rank(), i, y, pixelsPerNano);
            }
        }
    }

    private static String title(TimelinePanel panel, BubbleReport bubble) {
        String length =
                switch (panel.scale()) {
                    case UNITS -> "%d units".formatted(bubble.makespanNanos());
                    case NANOS ->
                            String.format(Locale.ROOT, "%.2f ms", bubble.makespanNanos() / 1e6);
                };
        return String.format(
                Locale.ROOT,
                "%s: %s, bubble %.1f %%",
                panel.title(),
                length,
                100 * bubble.bubbleShare());
    }

    private static void op(
            StringBuilder svg,
            Timeline timeline,
            int rank,
            int position,
            int y,
            double pixelsPerNano) {
        long duration = timeline.durationNanos(rank, position);
        if (duration == 0) {
            return;
        }
        Op op = timeline.schedule().program(rank).ops().get(position);
        OpClass kind = OpClass.of(op);
        boolean compute = !op.computations().isEmpty();
        double x =
                LEFT
                        + (timeline.startNanos(rank, position) - timeline.startNanos())
                                * pixelsPerNano;
        double width = duration * pixelsPerNano;
        // what is no computation is drawn flat, so that waiting looks like idle time with a reason
        int inset = compute ? 0 : BAR / 3;
        PipelineShape shape = timeline.schedule().shape();
        String name = OpText.print(op, shape);
        rect(svg, kind.label(), x, y + inset, Math.max(0.3, width - 0.5), BAR - 2 * inset, name);
        String label =
                op.computations().stream()
                        .map(part -> label(part, shape))
                        .collect(Collectors.joining("/"));
        if (compute && width > LETTER * label.length()) {
            text(svg, "on " + kind.label(), x + width / 2, y + 15, label);
        }
    }

    /** Micro-batch, with the slice where sequences are cut. */
    private static String label(Op.Compute op, PipelineShape shape) {
        return shape.slices() > 1
                ? op.unit().microBatch() + "." + op.unit().slice()
                : String.valueOf(op.unit().microBatch());
    }

    private static void rect(
            StringBuilder svg,
            String style,
            double x,
            double y,
            double width,
            double height,
            String tooltip) {
        svg.append(
                String.format(
                        Locale.ROOT,
                        "<rect class=\"%s\" x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%.0f\"",
                        style,
                        x,
                        y,
                        width,
                        height));
        svg.append(tooltip.isEmpty() ? "/>\n" : "><title>" + tooltip + "</title></rect>\n");
    }

    private static void text(StringBuilder svg, String style, double x, double y, String text) {
        String escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;");
        svg.append(
                String.format(
                        Locale.ROOT,
                        "<text class=\"%s\" x=\"%.2f\" y=\"%.0f\">%s</text>\n",
                        style,
                        x,
                        y,
                        escaped));
    }
}
