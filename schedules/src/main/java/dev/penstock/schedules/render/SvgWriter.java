package dev.penstock.schedules.render;

import java.util.Locale;

/** Writes SVG elements, one per line. Coordinates are pixels; texts are escaped. */
final class SvgWriter {
    private final StringBuilder svg = new StringBuilder();

    SvgWriter(int width, int height, String label, String style) {
        write(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">",
                width, height, escaped(label));
        svg.append(style);
    }

    void rect(String style, double x, double y, double width, double height, String tooltip) {
        write(
                "<rect class=\"%s\" x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%.0f\">%s</rect>",
                style, x, y, width, height, title(tooltip));
    }

    /** A line through what the data says, in SVG's own words. */
    void path(String style, String data, String tooltip) {
        write("<path class=\"%s\" d=\"%s\">%s</path>", style, data, title(tooltip));
    }

    void dot(String style, double x, double y) {
        write("<circle class=\"%s\" cx=\"%.2f\" cy=\"%.2f\" r=\"2\"/>", style, x, y);
    }

    void text(String style, double x, double y, String text) {
        write("<text class=\"%s\" x=\"%.2f\" y=\"%.0f\">%s</text>", style, x, y, escaped(text));
    }

    /** The whole document; the writer is of no use after it. */
    String end() {
        return svg.append("</svg>\n").toString();
    }

    private void write(String format, Object... values) {
        svg.append(String.format(Locale.ROOT, format, values)).append('\n');
    }

    private static String title(String tooltip) {
        return tooltip.isEmpty() ? "" : "<title>" + escaped(tooltip) + "</title>";
    }

    /** What XML cannot hold at all, such as control characters, becomes a replacement character. */
    private static String escaped(String text) {
        return text.replaceAll(
                        "[^\\t\\n\\r\\x20-\\x{D7FF}\\x{E000}-\\x{FFFD}\\x{10000}-\\x{10FFFF}]",
                        "\uFFFD")
                .replace("&", "&amp;")
                .replace("<", "&lt;")
                .replace(">", "&gt;")
                .replace("\"", "&quot;");
    }
}
