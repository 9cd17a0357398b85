package dev.penstock.runtime.evaluation;

import java.util.Locale;
import java.util.Map;

/**
 * The figures of a task, of one file or of all.
 *
 * @param measures by name, in the order in which they are told: counts as {@code Long}, all else as
 *     {@code Double}
 */
public record TaskResult(String file, Map<String, Number> measures) {
    /** Returns {@code bits per byte} for {@code bitsPerByte}. */
    public static String words(String name) {
        return name.replaceAll("([A-Z])", " $1").toLowerCase(Locale.ROOT);
    }

    /** Returns a figure as people read it. */
    public static String shown(Number value) {
        if (value instanceof Long) {
            return value.toString();
        }
        double figure = value.doubleValue();
        return (figure < 1e6 ? "%.4f" : "%.4e").formatted(figure);
    }
}
