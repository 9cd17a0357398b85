package dev.penstock.runtime.metrics;

import java.time.Duration;
import java.util.Locale;

/** Formats numbers for people: the same everywhere, whatever the machine's locale. */
public final class Quantities {
    private static final double KIBI = 1024;

    private Quantities() {}

    /** Returns {@code 0:42}, {@code 12:05} or {@code 3:07:59}. */
    public static String clock(Duration time) {
        long seconds = Math.max(0, Math.round(time.toMillis() / 1e3));
        long hours = seconds / 3600;
        return hours > 0
                ? format("%d:%02d:%02d", hours, seconds / 60 % 60, seconds % 60)
                : format("%d:%02d", seconds / 60, seconds % 60);
    }

    /** Returns {@code 950}, {@code 12.3k} or {@code 1.25M}. */
    public static String count(double value) {
        if (!Double.isFinite(value)) {
            return "-";
        }
        if (Math.abs(value) < 1e4) {
            return format("%.0f", value);
        }
        return Math.abs(value) < 1e6 ? format("%.1fk", value / 1e3) : format("%.2fM", value / 1e6);
    }

    /** Returns {@code 512 B}, {@code 31.5 MiB} or {@code 1.25 GiB}. */
    public static String bytes(double bytes) {
        if (bytes < KIBI) {
            return format("%.0f B", bytes);
        }
        if (bytes < KIBI * KIBI) {
            return format("%.1f KiB", bytes / KIBI);
        }
        return bytes < KIBI * KIBI * KIBI
                ? format("%.1f MiB", bytes / (KIBI * KIBI))
                : format("%.2f GiB", bytes / (KIBI * KIBI * KIBI));
    }

    /** Returns {@code 3.20 ms}, {@code 120 ms}, {@code 4.5 µs} or {@code 2.31 s}. */
    public static String nanos(double nanos) {
        if (nanos >= 1e9) {
            return format("%.2f s", nanos / 1e9);
        }
        if (nanos >= 1e8) {
            return format("%.0f ms", nanos / 1e6);
        }
        if (nanos >= 1e6) {
            return format(nanos >= 1e7 ? "%.1f ms" : "%.2f ms", nanos / 1e6);
        }
        return format("%.1f µs", nanos / 1e3);
    }

    /** Returns {@code 11.1 %}; a dash if the share is not known. */
    public static String percent(double share) {
        return Double.isFinite(share) ? format("%.1f %%", 100 * share) : "-";
    }

    /** Returns {@code 3.1416}; a dash if the loss is not known. */
    public static String loss(double loss) {
        return Double.isFinite(loss) ? format("%.4f", loss) : "-";
    }

    /** Same as {@link String#format} with a point as the decimal sign. */
    public static String format(String pattern, Object... arguments) {
        return String.format(Locale.ROOT, pattern, arguments);
    }
}
