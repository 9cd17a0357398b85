package dev.penstock.runtime.config.links;

import dev.penstock.runtime.config.reading.Mismatch;
import java.math.BigDecimal;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What a link carries in a second.
 *
 * @param bitsPerSecond 1 or more
 */
public record Bandwidth(long bitsPerSecond) implements Comparable<Bandwidth> {
    /** Rising, each a thousand times the one before. */
    private static final List<String> UNITS = List.of("bit/s", "kbit/s", "Mbit/s", "Gbit/s");

    private static final Pattern FORM = Pattern.compile("([0-9.]+)\\s*([kMG]?)(bit|B|bps)(/s)?");

    /**
     * Reads text such as {@code 100 Mbit/s} or {@code 12.5 MB/s}.
     *
     * @throws Mismatch if it is no bandwidth
     */
    public static Bandwidth parse(String text) {
        Matcher parts = FORM.matcher(text.strip());
        boolean known = parts.matches() && parts.group(3).equals("bps") == (parts.group(4) == null);
        if (!known) {
            throw new Mismatch("", "write for example 100 Mbit/s, or 12.5 MB/s");
        }
        try {
            BigDecimal bits =
                    new BigDecimal(parts.group(1))
                            .multiply(BigDecimal.valueOf(1_000).pow(thousands(parts.group(2))))
                            .multiply(BigDecimal.valueOf(parts.group(3).equals("B") ? 8 : 1));
            return new Bandwidth(bits.longValueExact());
        } catch (ArithmeticException | NumberFormatException e) {
            throw new Mismatch();
        }
    }

    private static int thousands(String prefix) {
        return prefix.isEmpty() ? 0 : 1 + "kMG".indexOf(prefix);
    }

    public double bytesPerSecond() {
        return bitsPerSecond / 8.0;
    }

    @Override
    public int compareTo(Bandwidth other) {
        return Long.compare(bitsPerSecond, other.bitsPerSecond);
    }

    /** Exact, in the largest unit that has no fraction: {@code 100 Mbit/s}. */
    @Override
    public String toString() {
        int unit = 0;
        long amount = bitsPerSecond;
        while (amount != 0 && amount % 1_000 == 0 && unit < UNITS.size() - 1) {
            amount /= 1_000;
            unit++;
        }
        return String.format(Locale.ROOT, "%d %s", amount, UNITS.get(unit));
    }
}
