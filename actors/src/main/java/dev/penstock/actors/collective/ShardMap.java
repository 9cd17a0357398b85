package dev.penstock.actors.collective;

/**
 * How a flat buffer is cut into equal parts, one for each member of a group. Parts begin on 64-byte
 * lines, so the last ones may be shorter, or empty in a small buffer.
 *
 * @param elements of the whole
 * @param parts how many there are
 */
public record ShardMap(long elements, int parts) {
    private static final int LINE_ELEMENTS = 16;

    public ShardMap {
        if (elements < 0 || parts < 1) {
            throw new IllegalArgumentException(
                    "expected 0 elements or more in 1 part or more, got %d in %d"
                            .formatted(elements, parts));
        }
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
        return (even + LINE_ELEMENTS - 1) / LINE_ELEMENTS * LINE_ELEMENTS;
    }
}
