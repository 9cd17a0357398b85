package dev.penstock.actors.collective;

/**
 * How a flat buffer is cut into equal parts, one for each member of a group. Parts are whole units,
 * so the last ones may be shorter, or empty in a small buffer.
 *
 * @param elements of the whole
 * @param parts how many there are
 * @param unit elements that stay together
 */
public record ShardMap(long elements, int parts, long unit) {
    private static final int LINE_ELEMENTS = 16;

    public ShardMap {
        if (elements < 0 || parts < 1 || unit < 1) {
            throw new IllegalArgumentException(
                    "expected 0 elements or more in 1 part or more of units of 1 or more, got %d in %d of %d"
                            .formatted(elements, parts, unit));
        }
    }

    /** Parts that begin on 64-byte lines. */
    public ShardMap(long elements, int parts) {
        this(elements, parts, LINE_ELEMENTS);
    }

    /** First element of a part. */
    public long from(int part) {
        return Math.min(elements, part * length());
    }

    /** One behind the last element of a part. */
    public long to(int part) {
        return Math.min(elements, (part + 1) * length());
    }

    /** Elements of a part. */
    public long count(int part) {
        return to(part) - from(part);
    }

    /** Elements of the longest part, which is the first. */
    public long length() {
        long even = (elements + parts - 1) / parts;
        return (even + unit - 1) / unit * unit;
    }
}
