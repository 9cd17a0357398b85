package dev.penstock.schedules.render;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.simulate.BubbleReport;
import dev.penstock.schedules.simulate.MemoryCurve;
import dev.penstock.schedules.simulate.Timeline;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/**
 * A panel of a picture: a title, then for each rank the bar of its ops with its bubble, a lane for
 * what runs beside the computations if the panel has any, and what the rank holds.
 *
 * <pre>
 * title: 33 units, bubble 27.3 %
 *        [0][1]     [0   ][1   ]   bubble 45.5 %
 * rank 0   ====                    (gathers, reductions)
 *        __|--------|____|------   peak 4
 * </pre>
 */
final class PanelRows {
    private static final int TITLE = 34;
    private static final int BAR = 22;
    private static final int LANE = 6;
    private static final int GAP = 8;
    private static final int STRIP_GAP = 3;
    private static final int LETTER = 7;

    private final TimelinePanel panel;
    private final Timeline timeline;
    private final PipelineShape shape;
    private final List<MemoryCurve> curves;
    private final Set<OpClass> kinds;
    private final int left;
    private final int lane;

    PanelRows(TimelinePanel panel, int left) {
        this.panel = panel;
        this.timeline = panel.timeline();
        this.shape = timeline.schedule().shape();
        this.curves = MemoryCurve.of(timeline, PassKind.TRAINING);
        this.kinds = kinds(timeline);
        this.left = left;
        this.lane = kinds.stream().anyMatch(OpClass::background) ? LANE : 0;
    }

    private static Set<OpClass> kinds(Timeline timeline) {
        var kinds = EnumSet.noneOf(OpClass.class);
        for (RankProgram program : timeline.schedule().programs()) {
            for (int i = 0; i < timeline.opsRun(program.rank()); i++) {
                if (timeline.durationNanos(program.rank(), i) > 0) {
                    Op op = program.ops().get(i);
                    kinds.add(OpClass.of(op));
                    op.computations().forEach(part -> kinds.add(OpClass.of(part)));
                }
            }
        }
        return kinds;
    }

    /** What takes any time, and so is seen; of pairs the parts as well. */
    Set<OpClass> kinds() {
        return kinds;
    }

    /** The most that a rank holds of activations, or of gathered parameters. */
    long mostHeld() {
        return curves.stream()
                .mapToLong(c -> Math.max(c.peakActivations(), MemoryStrip.peakParameters(c)))
                .max()
                .orElse(0);
    }

    boolean gathers() {
        return curves.stream().anyMatch(curve -> MemoryStrip.peakParameters(curve) > 0);
    }

    int height() {
        return TITLE + row() * shape.ranks();
    }

    private int row() {
        return BAR + lane + STRIP_GAP + MemoryStrip.HEIGHT + GAP;
    }

    /**
     * @param right pixel at which the longest panel ends
     * @param heldScale what is as high as a memory strip
     */
    void draw(SvgWriter svg, int top, int right, double pixelsPerNano, long heldScale) {
        BubbleReport bubble = timeline.bubble();
        svg.text("title", left, top + 20, title(bubble));
        double end = timeline.makespanNanos() * pixelsPerNano;
        var memory =
                new MemoryStrip(
                        timeline.startNanos(), left, left + end, pixelsPerNano, heldScale, right);
        for (BubbleReport.RankTime time : bubble.ranks()) {
            int rank = time.rank();
            int y = top + TITLE + row() * rank;
            svg.text("", 10, y + 15, "rank " + rank);
            svg.rect("idle", left, y, end, BAR, "");
            for (int i = 0; i < timeline.opsRun(rank); i++) {
                if (timeline.durationNanos(rank, i) > 0) {
                    op(svg, rank, i, y, pixelsPerNano);
                }
            }
            svg.text("", right + 8, y + 15, "bubble " + percent(time.idleNanos()));
            memory.draw(svg, curves.get(rank), y + BAR + lane + STRIP_GAP);
        }
    }

    private String percent(long idleNanos) {
        long all = timeline.makespanNanos();
        return String.format(Locale.ROOT, "%.1f %%", all == 0 ? 0 : 100.0 * idleNanos / all);
    }

    private String title(BubbleReport bubble) {
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

    private void op(SvgWriter svg, int rank, int position, int y, double pixelsPerNano) {
        Op op = timeline.schedule().program(rank).ops().get(position);
        String name = OpText.print(op, shape);
        double x =
                left
                        + (timeline.startNanos(rank, position) - timeline.startNanos())
                                * pixelsPerNano;
        double all = timeline.durationNanos(rank, position) * pixelsPerNano;
        // a thin line stays free between neighbours
        double width = Math.max(0.3, all - 0.5);
        OpClass kind = OpClass.of(op);
        List<Op.Compute> parts = op.computations();
        if (parts.isEmpty()) {
            // flat: beside the computations, or a wait that looks like idle time with a reason
            int flatY = kind.background() ? y + BAR + 1 : y + BAR / 3;
            int height = kind.background() ? LANE - 2 : BAR - 2 * (BAR / 3);
            svg.rect(kind.label(), x, flatY, width, height, name);
            return;
        }
        int height = BAR / parts.size();
        for (int i = 0; i < parts.size(); i++) {
            String style = OpClass.of(parts.get(i)).label();
            svg.rect(style, x, y + i * height, width, height, name);
            String label = label(parts.get(i));
            if (all > LETTER * label.length()) {
                String size = parts.size() > 1 ? " half" : "";
                int base = y + i * height + height / 2 + (parts.size() > 1 ? 3 : 4);
                svg.text("on " + style + size, x + all / 2, base, label);
            }
        }
    }

    /** Micro-batch, with the slice where sequences are cut. */
    private String label(Op.Compute op) {
        return shape.slices() > 1
                ? op.unit().microBatch() + "." + op.unit().slice()
                : String.valueOf(op.unit().microBatch());
    }
}
