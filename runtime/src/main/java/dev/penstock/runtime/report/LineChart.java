package dev.penstock.runtime.report;

import dev.penstock.runtime.metrics.Quantities;
import java.util.List;

/**
 * A chart over training steps as SVG. Colours come from {@code chart.css}, so that it follows the
 * reader's light or dark theme.
 *
 * @param title said to screen readers
 * @param yLabel what is shown, with its unit
 * @param width of the picture in pixels; it scales
 */
record LineChart(String title, String yLabel, List<Series> series, int width, int height) {
    private static final int LEFT = 56;
    private static final int RIGHT = 16;
    private static final int TOP = 34;
    private static final int BOTTOM = 40;

    LineChart {
        series = List.copyOf(series);
    }

    /** How a series is drawn. */
    enum Look {
        FAINT,
        LINE,
        DASHED,
        POINTS
    }

    /**
     * One line of a chart.
     *
     * @param colour number of a colour of {@code chart.css}, from 1
     * @param x steps, rising
     * @param y values; those that are not finite are left out
     */
    record Series(String label, int colour, Look look, double[] x, double[] y) {}

    /** A whole SVG file. */
    String file() {
        return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                + svg("<style>" + Markup.resource("chart.css") + "</style>");
    }

    /** The picture as part of a page that holds {@code chart.css}. */
    String inline() {
        return svg("");
    }

    private String svg(String style) {
        AxisRange x = AxisRange.of(series.stream().map(Series::x).toList(), 0);
        AxisRange y = AxisRange.of(series.stream().map(Series::y).toList(), 0.05);
        StringBuilder svg = new StringBuilder();
        svg.append(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">%s"
                        .formatted(width, height, Markup.escape(title), style));
        svg.append("<rect class=\"paper\" width=\"%d\" height=\"%d\"/>".formatted(width, height));
        appendAxes(svg, x, y);
        for (Series one : series) {
            appendSeries(svg, one, x, y);
        }
        appendLegend(svg);
        return svg.append("</svg>\n").toString();
    }

    private void appendAxes(StringBuilder svg, AxisRange x, AxisRange y) {
        AxisTicks yTicks = AxisTicks.between(y.low(), y.high(), height / 45);
        for (int i = 0; i < yTicks.values().size(); i++) {
            double at = yPixel(y, yTicks.values().get(i));
            svg.append(
                    Quantities.format(
                            "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>",
                            LEFT, width - RIGHT, at, at));
            svg.append(
                    Quantities.format(
                            "<text class=\"tick\" text-anchor=\"end\" x=\"%d\" y=\"%.1f\">%s</text>",
                            LEFT - 8, at + 4, yTicks.labels().get(i)));
        }
        AxisTicks xTicks = AxisTicks.between(x.low(), x.high(), width / 90);
        for (int i = 0; i < xTicks.values().size(); i++) {
            svg.append(
                    Quantities.format(
                            "<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">%s</text>",
                            xPixel(x, xTicks.values().get(i)),
                            height - BOTTOM + 17,
                            xTicks.labels().get(i)));
        }
        svg.append(
                "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>"
                        .formatted(LEFT, width - RIGHT, height - BOTTOM, height - BOTTOM));
        svg.append(
                "<text class=\"label\" text-anchor=\"middle\" x=\"%d\" y=\"%d\">step</text>"
                        .formatted((LEFT + width - RIGHT) / 2, height - 6));
        svg.append(
                "<text class=\"label\" x=\"%d\" y=\"18\">%s</text>"
                        .formatted(8, Markup.escape(yLabel)));
    }

    private void appendSeries(StringBuilder svg, Series one, AxisRange x, AxisRange y) {
        double[][] points = Thinning.thin(one.x(), one.y(), width);
        String colour = "c" + one.colour();
        if (one.look() == Look.POINTS) {
            for (int i = 0; i < points[0].length; i++) {
                svg.append(
                        Quantities.format(
                                "<circle class=\"dot %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.2\"><title>%s, step %.0f: %.4f</title></circle>",
                                colour,
                                xPixel(x, points[0][i]),
                                yPixel(y, points[1][i]),
                                Markup.escape(one.label()),
                                points[0][i],
                                points[1][i]));
            }
        }
        svg.append("<polyline class=\"%s %s\" points=\"".formatted(lineClass(one.look()), colour));
        for (int i = 0; i < points[0].length; i++) {
            svg.append(
                    Quantities.format(
                            "%.1f,%.1f ", xPixel(x, points[0][i]), yPixel(y, points[1][i])));
        }
        svg.append("\"/>");
    }

    private void appendLegend(StringBuilder svg) {
        int at = width - RIGHT;
        for (int i = series.size() - 1; i >= 0; i--) {
            Series one = series.get(i);
            at -= 7 * one.label().length() + 8;
            svg.append(
                    "<text class=\"legend\" x=\"%d\" y=\"18\">%s</text>"
                            .formatted(at, Markup.escape(one.label())));
            at -= 24;
            svg.append(
                    "<line class=\"%s c%d\" x1=\"%d\" x2=\"%d\" y1=\"14\" y2=\"14\"/>"
                            .formatted(lineClass(one.look()), one.colour(), at, at + 18));
            if (one.look() == Look.POINTS) {
                svg.append(
                        "<circle class=\"dot c%d\" cx=\"%d\" cy=\"14\" r=\"3.2\"/>"
                                .formatted(one.colour(), at + 9));
            }
            at -= 14;
        }
    }

    private static String lineClass(Look look) {
        return switch (look) {
            case FAINT -> "line faint";
            case LINE -> "line";
            case DASHED -> "line dashed";
            case POINTS -> "line thin";
        };
    }

    private double xPixel(AxisRange range, double value) {
        return LEFT + range.share(value) * (width - LEFT - RIGHT);
    }

    private double yPixel(AxisRange range, double value) {
        return height - BOTTOM - range.share(value) * (height - TOP - BOTTOM);
    }
}
