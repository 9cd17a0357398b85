package dev.penstock.schedules.render;

import java.util.EnumSet;
import java.util.List;
import java.util.stream.Collectors;

/**
 * Timelines as an SVG Gantt chart: for each rank its ops, its bubble and what it holds; a legend of
 * what occurs. All panels have one time scale and one memory scale, so a measured step can be
 * compared with the simulated one above it. The colours are those of Okabe and Ito, told apart by
 * colour-blind readers; the page's light or dark background shows through.
 */
public final class ScheduleSvg {
    private static final int WIDTH = 1200;
    private static final int LEFT = 70;
    private static final int RIGHT_COLUMN = 120;

    private static final String STYLE =
            """
            <style>
            :root { color-scheme: light dark; }
            text { font: 11px system-ui, sans-serif; fill: #1b1b1b; }
            .title { font-size: 14px; font-weight: 600; }
            .on { text-anchor: middle; pointer-events: none; }
            .half { font-size: 9px; }
            rect.idle { fill: #8883; }
            rect.forward { fill: #0072b2; }
            rect.backward { fill: #e69f00; }
            rect.backward-input { fill: #d55e00; }
            rect.backward-weight { fill: #f0e442; }
            rect.recompute { fill: #7fb2d6; }
            rect.offload, rect.reload { fill: #5b8c5a; }
            rect.gather, rect.release { fill: #8c6bb1; }
            rect.send { fill: #009e73; }
            rect.receive { fill: #56b4e9; fill-opacity: .6; }
            rect.reduce { fill: #cc79a7; }
            .held { fill: #009e7344; stroke: #009e73; }
            .gathered { fill: none; stroke: #8c6bb1; stroke-dasharray: 3 2; }
            .peak { fill: #009e73; }
            @media (prefers-color-scheme: dark) { text { fill: #eee; } }
            text.on { fill: #1b1b1b; }
            text.on.forward { fill: #fff; }
            </style>
            """;

    private ScheduleSvg() {}

    /** An SVG document with these panels from top to bottom. */
    public static String draw(TimelinePanel... panels) {
        return draw(List.of(panels));
    }

    /** An SVG document with these panels from top to bottom. */
    public static String draw(List<TimelinePanel> panels) {
        int right = WIDTH - RIGHT_COLUMN;
        List<PanelRows> rows = panels.stream().map(panel -> new PanelRows(panel, LEFT)).toList();
        long longest = panels.stream().mapToLong(p -> p.timeline().makespanNanos()).max().orElse(0);
        double pixelsPerNano = longest == 0 ? 0 : (double) (right - LEFT) / longest;
        long mostHeld = rows.stream().mapToLong(PanelRows::mostHeld).max().orElse(0);
        SvgLegend legend = legend(rows, right);
        int height = legend.height() + rows.stream().mapToInt(PanelRows::height).sum();
        String titles = panels.stream().map(TimelinePanel::title).collect(Collectors.joining(", "));
        var svg = new SvgWriter(WIDTH, height, titles, STYLE);
        legend.draw(svg);
        int top = legend.height();
        for (PanelRows panel : rows) {
            panel.draw(svg, top, right, pixelsPerNano, mostHeld);
            top += panel.height();
        }
        return svg.end();
    }

    private static SvgLegend legend(List<PanelRows> rows, int right) {
        var kinds = EnumSet.noneOf(OpClass.class);
        rows.forEach(panel -> kinds.addAll(panel.kinds()));
        boolean gathers = rows.stream().anyMatch(PanelRows::gathers);
        return new SvgLegend(kinds, gathers, LEFT, right + RIGHT_COLUMN);
    }
}
