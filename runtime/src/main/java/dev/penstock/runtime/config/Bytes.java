package dev.penstock.runtime.config;

/**
 * A size in memory or on disk.
 *
 * @param count bytes, 0 or more
 */
public record Bytes(long count) implements Comparable<Bytes> {
    private static final String[] UNITS = {"B", "KiB", "MiB", "GiB", "TiB"};

    @Override
    public int compareTo(Bytes other) {
        return Long.compare(count, other.count);
    }

    /** Exact, in the largest unit that has no fraction: {@code 8 MiB}. */
    @Override
    public String toString() {
        int unit = 0;
        long amount = count;
        while (amount != 0 && amount % 1024 == 0 && unit < UNITS.length - 1) {
            amount /= 1024;
            unit++;
        }
        return amount + " " + UNITS[unit];
    }
}
