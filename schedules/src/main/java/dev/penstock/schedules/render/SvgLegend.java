package dev.penstock.schedules.render;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;

/** Names what a picture shows, and nothing else, in as many lines as that takes. */
final class SvgLegend {
    private static final int MARGIN = 8;
    private static final int LINE = 22;
    private static final int SWATCH = 14;
    private static final int LETTER = 6;

    private record Entry(String style, String words, int x, int line) {
        static int width(String words) {
            return SWATCH + 6 + LETTER * words.length() + 16;
        }
    }

    private final List<Entry> entries = new ArrayList<>();
    private final int left;
    private final int right;
    private int x;
    private int line;

    SvgLegend(Collection<OpClass> kinds, boolean gathered, int left, int right) {
        this.left = left;
        this.right = right;
        this.x = left;
        kinds.forEach(kind -> add(kind.label(), kind.words()));
        add("idle", "idle");
        add("held", "activations held");
        if (gathered) {
            add("gathered", "parameters gathered");
        }
    }

    private void add(String style, String words) {
        int width = Entry.width(words);
        if (x > left && x + width > right) {
            x = left;
            line++;
        }
        entries.add(new Entry(style, words, x, line));
        x += width;
    }

    int height() {
        return MARGIN + LINE * (line + 1);
    }

    void draw(SvgWriter svg) {
        for (Entry entry : entries) {
            int y = MARGIN + LINE * entry.line;
            swatch(svg, entry, y);
            svg.text("", entry.x + SWATCH + 6, y + 11, entry.words);
        }
    }

    private static void swatch(SvgWriter svg, Entry entry, int y) {
        switch (entry.style) {
            case "held", "gathered" -> {
                int middle = entry.x + SWATCH / 2;
                svg.path(
                        entry.style,
                        "M%d %dV%dh%dV%dH%d"
                                        .formatted(
                                                entry.x,
                                                y + SWATCH,
                                                y + 7,
                                                SWATCH / 2,
                                                y + 1,
                                                middle + 7)
                                + "V"
                                + (y + SWATCH),
                        "");
            }
            case "overlapped" -> {
                svg.rect("forward", entry.x, y, SWATCH, SWATCH / 2, "");
                svg.rect("backward", entry.x, y + SWATCH / 2, SWATCH, SWATCH / 2, "");
            }
            default -> svg.rect(entry.style, entry.x, y, SWATCH, SWATCH, "");
        }
    }
}
