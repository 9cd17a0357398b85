package dev.penstock.runtime.config.reading;

import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * An interval of values, read from its usual notation: {@code [1, )}, {@code (0, 1]}.
 *
 * @param low null: none
 * @param high null: none
 */
public record Range<T extends Comparable<T>>(
        @Nullable T low, boolean lowIncluded, @Nullable T high, boolean highIncluded) {

    public static <T extends Comparable<T>> Range<T> parse(String text, Function<String, T> bound) {
        if (text.isEmpty()) {
            return new Range<>(null, true, null, true);
        }
        int comma = text.indexOf(',');
        String low = text.substring(1, comma).strip();
        String high = text.substring(comma + 1, text.length() - 1).strip();
        return new Range<>(
                low.isEmpty() ? null : bound.apply(low),
                text.startsWith("["),
                high.isEmpty() ? null : bound.apply(high),
                text.endsWith("]"));
    }

    public boolean contains(T value) {
        return (low == null || low.compareTo(value) < (lowIncluded ? 1 : 0))
                && (high == null || high.compareTo(value) > (highIncluded ? -1 : 0));
    }

    /** For an error message, such as {@code from 1 to 1024}; empty for all values. */
    public String describe(Function<T, String> write) {
        String from = low == null ? "" : (lowIncluded ? "at least " : "above ") + write.apply(low);
        String to = high == null ? "" : (highIncluded ? "at most " : "below ") + write.apply(high);
        return from + (from.isEmpty() || to.isEmpty() ? "" : " and ") + to;
    }
}
