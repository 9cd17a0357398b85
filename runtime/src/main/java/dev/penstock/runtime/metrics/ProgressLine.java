package dev.penstock.runtime.metrics;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * One line that shows how far a run is. On a terminal that is not wide enough for all of it, the
 * least important parts are dropped, so that there is always a bar:
 *
 * <pre>
 *   quickstart  21 % │███▏           │ 128/600  loss 2.8412  12.3k tok/s  bubble 14.2 % (ideal 11.1 %)  val 2.9000  ETA 1:06
 *    21 % │███▏           │ 128/600  loss 2.8412  12.3k tok/s  bubble 14.2 %  ETA 1:06
 *    21 % │███▏           │ 128/600  loss 2.8412
 * </pre>
 *
 * @param name of the run
 * @param last the step that it ends with
 * @param left time until then; zero if not known
 * @param figures of the last step; empty before the first
 */
record ProgressLine(String name, long step, long last, Duration left, Figures figures) {
    private static final int NARROWEST_BAR = 6;
    private static final int WIDEST_BAR = 40;
    private static final String EIGHTHS = " ▏▎▍▌▋▊▉";

    /** The figures, formatted by {@link Quantities}; each empty if it is not known. */
    record Figures(String loss, String speed, String bubble, String ideal, String validation) {
        static final Figures NONE = new Figures("", "", "", "", "");
    }

    /**
     * @param width of the text, exactly
     * @param blocks whether the terminal can show block characters; otherwise it gets ASCII
     */
    String text(int width, boolean blocks) {
        String start = Quantities.format("%3d %% ", last == 0 ? 100 : 100 * step / last);
        for (String[] ends : ends()) {
            int bar = width - ends[0].length() - start.length() - 2 - ends[1].length();
            if (bar >= NARROWEST_BAR) {
                return filled(
                        ends[0] + start + bar(Math.min(bar, WIDEST_BAR), blocks) + ends[1], width);
            }
        }
        return filled(start + step + "/" + last, width);
    }

    /** Returns the texts before and after the bar, from the longest form to the shortest. */
    private List<String[]> ends() {
        String steps = " %d/%d".formatted(step, last);
        String loss = said("loss ", figures.loss());
        String speed = figures.speed().isEmpty() ? "" : "  " + figures.speed() + " tok/s";
        String bubble = said("bubble ", figures.bubble());
        String ideal = figures.ideal().isEmpty() ? "" : " (ideal " + figures.ideal() + ")";
        String validation = said("val ", figures.validation());
        String eta = left.isZero() ? "" : said("ETA ", Quantities.clock(left));
        List<String[]> all = new ArrayList<>();
        all.add(
                new String[] {
                    name + " ", steps + loss + speed + bubble + ideal + validation + eta
                });
        all.add(new String[] {"", steps + loss + speed + bubble + ideal + validation + eta});
        all.add(new String[] {"", steps + loss + speed + bubble + ideal + eta});
        all.add(new String[] {"", steps + loss + speed + bubble + eta});
        all.add(new String[] {"", steps + loss + speed + eta});
        all.add(new String[] {"", steps + loss + eta});
        all.add(new String[] {"", steps + loss});
        all.add(new String[] {"", steps});
        return all;
    }

    private static String said(String what, String value) {
        return value.isEmpty() ? "" : "  " + what + value;
    }

    private String bar(int columns, boolean blocks) {
        double done = last == 0 ? columns : (double) columns * step / last;
        int whole = (int) Math.min(columns, Math.floor(done));
        String edge = blocks ? "│" : "|";
        StringBuilder bar = new StringBuilder(edge).append((blocks ? "█" : "=").repeat(whole));
        if (blocks && whole < columns) {
            bar.append(EIGHTHS.charAt((int) (8 * (done - whole))));
        }
        return filled(bar.toString(), columns + 1) + edge;
    }

    private static String filled(String text, int width) {
        return text.length() > width
                ? text.substring(0, Math.max(0, width))
                : text + " ".repeat(width - text.length());
    }
}
