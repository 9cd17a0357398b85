package dev.penstock.actors.collective;

/**
 * How a flat buffer is cut into equal parts, one for each member of a group. Parts are whole units,
 * so the last ones may be shorter, or empty in a small buffer.
 *
 * @param elements of the whole
 * @param parts how many there are
 * @param unit elements that stay together
 * @param owner the part that has everything; {@link #EVEN} where all have some
 */
public record ShardMap(long elements, int parts, long unit, int owner) {
    private static final int LINE_ELEMENTS = 16;
    private static final int EVEN = -1;

    public ShardMap {
        if (elements < 0 || parts < 1 || unit < 1 || owner >= parts) {
            throw new IllegalArgumentException(
                    "expected 0 elements or more in 1 part or more of units of 1 or more, got %d in %d of %d"
                            .formatted(elements, parts, unit));
        }
    }

    public ShardMap(long elements, int parts, long unit) {
        this(elements, parts, unit, EVEN);
    }

    /** One part has everything: a gather is then a broadcast from its member, a sum one to it. */
    public static ShardMap of(int owner, long elements, int parts) {
        return new ShardMap(elements, parts, Math.max(1, elements), owner);
    }

    /** Parts that begin on 64-byte lines. */
    public ShardMap(long elements, int parts) {
        this(elements, parts, LINE_ELEMENTS);
    }

    /** First element of a part. */
    public long from(int part) {
        return isEven() ? Math.min(elements, part * length()) : part <= owner ? 0 : elements;
    }

    /** One behind the last element of a part. */
    public long to(int part) {
        return isEven() ? Math.min(elements, (part + 1) * length()) : part < owner ? 0 : elements;
    }

    private boolean isEven() {
        return owner == EVEN;
    }

    /** Elements of a part. */
    public long count(int part) {
        return to(part) - from(part);
    }

    /** Elements of the longest part. */
    public long length() {
        if (!isEven()) {
            return elements;
        }
        long even = (elements + parts - 1) / parts;
        return (even + unit - 1) / unit * unit;
    }
}
