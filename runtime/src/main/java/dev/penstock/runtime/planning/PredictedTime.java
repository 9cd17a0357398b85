package dev.penstock.runtime.planning;

import java.util.Locale;

/** A predicted time in words. */
public final class PredictedTime {
    private PredictedTime() {}

    /** Returns seconds from one second on, milliseconds below. */
    public static String text(long nanos) {
        return nanos >= 1_000_000_000L
                ? String.format(Locale.ROOT, "%.2f s", nanos / 1e9)
                : String.format(Locale.ROOT, "%.1f ms", nanos / 1e6);
    }
}
