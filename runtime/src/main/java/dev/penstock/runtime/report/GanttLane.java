package dev.penstock.runtime.report;

import dev.penstock.actors.spi.RankStep;
import dev.penstock.runtime.metrics.Activity;
import dev.penstock.runtime.metrics.Quantities;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.simulate.Timeline;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/**
 * Draws the bars of one rank.
 *
 * @param timeline of all ranks; its start is at the left end
 * @param scale pixels per nanosecond
 * @param left pixels from the left end of the picture
 * @param top pixels from its top
 * @param height of the lane in pixels
 */
record GanttLane(Timeline timeline, int rank, double scale, double left, int top, int height) {

    /** The activities that fill a lane's height; the others are drawn as a strip. */
    static final Set<Activity> TALL =
            EnumSet.of(Activity.FORWARD, Activity.BACKWARD, Activity.UPDATE, Activity.REDUCE);

    private static final double STRIP = 0.3;

    /** Nothing to see below this, in pixels. */
    private static final double NARROWEST = 0.05;

    private static final int DIGIT_WIDTH = 7;
    private static final int LOWEST_WITH_NUMBERS = 14;

    /** A rectangle with a text for the pointer per op, and the micro-batch where there is room. */
    void appendNamed(StringBuilder svg) {
        List<Op> ops = ops();
        for (int i = 0; i < ops.size(); i++) {
            Op op = ops.get(i);
            Activity activity = Activity.of(op);
            Bar bar = barOf(i);
            svg.append(
                    bar.rectangle(
                            (TALL.contains(activity) ? "op " : "") + activity.label(),
                            "%s, %s, %s"
                                    .formatted(
                                            OpText.print(op, timeline.schedule().shape()),
                                            said(activity),
                                            bar.took())));
            if (op instanceof Op.Compute compute) {
                appendNumber(svg, bar, activity, number(compute));
            }
        }
    }

    /** All bars of an activity as one path: small, but without names. */
    void appendPlain(StringBuilder svg) {
        List<Op> ops = ops();
        for (Activity activity : Activity.values()) {
            StringBuilder path = new StringBuilder();
            for (int i = 0; i < ops.size(); i++) {
                if (Activity.of(ops.get(i)) == activity) {
                    Bar bar = barOf(i);
                    path.append(bar.width() < NARROWEST ? "" : bar.path());
                }
            }
            if (!path.isEmpty()) {
                svg.append("<path class=\"%s\" d=\"%s\"/>".formatted(activity.label(), path));
            }
        }
    }

    /** The optimizer of this rank. */
    void appendUpdate(StringBuilder svg, RankStep times) {
        Bar bar = bar(times.updateStartNanos(), times.updateEndNanos(), 1);
        svg.append(bar.rectangle("op update", said(Activity.UPDATE) + ", " + bar.took()));
    }

    /** What a reader calls an activity. */
    static String said(Activity activity) {
        return switch (activity) {
            case FORWARD -> "forward";
            case BACKWARD -> "backward";
            case SEND -> "sending";
            case RECEIVE -> "waiting for a tensor";
            case REDUCE -> "summing shared gradients";
            case IDLE -> "between ops";
            case UPDATE -> "optimizer";
        };
    }

    private void appendNumber(StringBuilder svg, Bar bar, Activity activity, String number) {
        if (height >= LOWEST_WITH_NUMBERS && bar.width() >= DIGIT_WIDTH * number.length() + 4) {
            svg.append(
                    Quantities.format(
                            "<text class=\"number %s\" x=\"%.1f\" y=\"%d\">%s</text>",
                            activity.label(),
                            bar.x() + bar.width() / 2,
                            top + height / 2 + 4,
                            number));
        }
    }

    private String number(Op.Compute op) {
        return timeline.schedule().shape().slices() > 1
                ? op.unit().microBatch() + "." + op.unit().slice()
                : String.valueOf(op.unit().microBatch());
    }

    private List<Op> ops() {
        return timeline.schedule().program(rank).ops();
    }

    private Bar barOf(int op) {
        boolean tall = TALL.contains(Activity.of(ops().get(op)));
        return bar(timeline.startNanos(rank, op), timeline.endNanos(rank, op), tall ? 1 : STRIP);
    }

    private Bar bar(long start, long end, double share) {
        double high = height * share;
        return new Bar(
                left + (start - timeline.startNanos()) * scale,
                top + (height - high) / 2,
                (end - start) * scale,
                high,
                end - start);
    }

    private record Bar(double x, double y, double width, double height, long nanos) {
        String rectangle(String cssClass, String title) {
            return Quantities.format(
                    "<rect class=\"%s\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\"><title>%s</title></rect>",
                    cssClass, x, y, width, height, Markup.escape(title));
        }

        String path() {
            return Quantities.format("M%.2f %.1fh%.2fv%.1fh-%.2fz", x, y, width, height, width);
        }

        String took() {
            return Quantities.nanos(nanos);
        }
    }
}
