package dev.penstock.runtime.config.reading;

/**
 * A size in memory or on disk.
 *
 * @param bytes 0 or more
 */
public record Bytes(long bytes) implements Comparable<Bytes> {
    private static final String[] UNITS = {"B", "KiB", "MiB", "GiB", "TiB"};

    @Override
    public int compareTo(Bytes other) {
        return Long.compare(bytes, other.bytes);
    }

    /** Exact, in the largest unit that has no fraction: {@code 8 MiB}. */
    @Override
    public String toString() {
        int unit = 0;
        long amount = bytes;
        while (amount != 0 && amount % 1024 == 0 && unit < UNITS.length - 1) {
            amount /= 1024;
            unit++;
        }
        return amount + " " + UNITS[unit];
    }
}
