package dev.penstock.schedules.render;

import dev.penstock.schedules.simulate.MemoryCurve;
import java.util.List;
import java.util.Locale;
import java.util.function.ToLongFunction;

/**
 * What a rank holds over time, as a filled step line; gathered parameters as a line of their own.
 *
 * <pre>
 *       __o____
 *    __|       |__
 * __|             |____   peak 3
 * </pre>
 *
 * @param left pixel of the time {@code startNanos}
 * @param end pixel of the end of the timeline
 * @param scale what is as high as the strip
 * @param right pixel after which the peak is written
 */
record MemoryStrip(
        long startNanos, double left, double end, double pixelsPerNano, long scale, int right) {
    static final int HEIGHT = 16;

    void draw(SvgWriter svg, MemoryCurve curve, int top) {
        long peak = curve.peakActivations();
        String tooltip =
                "rank %d holds activations of at most %d units".formatted(curve.rank(), peak);
        svg.path("held", steps(curve, top, MemoryCurve.Point::activations), tooltip);
        long gathered = peakParameters(curve);
        if (gathered > 0) {
            svg.path(
                    "gathered",
                    steps(curve, top, MemoryCurve.Point::parameters),
                    "rank %d holds at most %d gathers".formatted(curve.rank(), gathered));
        }
        curve.points().stream()
                .filter(point -> peak > 0 && point.activations() == peak)
                .findFirst()
                .ifPresent(point -> svg.dot("peak", x(point.nanos()), y(top, peak)));
        String more = gathered > 0 ? ", %d gathered".formatted(gathered) : "";
        svg.text("", right + 8, top + HEIGHT - 4, "peak " + peak + more);
    }

    /** The most parameters that are held at a time. */
    static long peakParameters(MemoryCurve curve) {
        return curve.points().stream().mapToLong(MemoryCurve.Point::parameters).max().orElse(0);
    }

    /** From the ground at the left to the ground at the right, so that it can be filled. */
    private String steps(MemoryCurve curve, int top, ToLongFunction<MemoryCurve.Point> held) {
        var path = new StringBuilder(format("M%.2f %d", left, top + HEIGHT));
        List<MemoryCurve.Point> points = curve.points();
        long level = 0;
        for (int i = 0; i < points.size(); ) {
            long nanos = points.get(i).nanos();
            long most = level;
            long last = level;
            for (; i < points.size() && points.get(i).nanos() == nanos; i++) {
                last = held.applyAsLong(points.get(i));
                most = Math.max(most, last);
            }
            // of what changes at one time a peak is seen, and how it ends, but no dip
            if (most > level && most > last) {
                path.append(format("H%.2fV%.2f", x(nanos), y(top, most)));
            }
            if (last != level) {
                path.append(format("H%.2fV%.2f", x(nanos), y(top, last)));
                level = last;
            }
        }
        return path.append(format("H%.2fV%d", end, top + HEIGHT)).toString();
    }

    private double x(long nanos) {
        return left + (nanos - startNanos) * pixelsPerNano;
    }

    private double y(int top, long held) {
        return top + HEIGHT - (double) HEIGHT * held / Math.max(1, scale);
    }

    private static String format(String format, Object... values) {
        return String.format(Locale.ROOT, format, values);
    }
}
