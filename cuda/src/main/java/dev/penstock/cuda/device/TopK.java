package dev.penstock.cuda.device;

/**
 * A share of a row's elements, those of the largest magnitudes, travels; the others are 0 on the
 * other side. Of equal magnitudes the one in the lower column goes first, and what is no number
 * before everything else, so that none gets lost.
 *
 * <p>The row's scale is the power of two of its largest magnitude, so that neither large rows nor
 * those of small gradients leave the range of halves. What is not finite leaves it as it is.
 *
 * <pre>
 *   3 of 40 elements   v0v1 v2p0 p1p2 scale                  halves of x / scale in the order of columns, then
 *   7 of 40            v0v1 v2v3 v4v5 v6-- 0-31 32-39 scale     16-bit columns, or a bit of each if that is shorter
 * </pre>
 *
 * @param share of a row's elements that travels, above 0, up to 1
 */
public record TopK(double share) implements RowCodec {
    /** As many columns as 16 bits can number. */
    private static final int POSITIONS = 1 << Short.SIZE;

    private static final double ROUNDING = 1e-9;
    private static final int INFINITE = 0x7f80_0000;
    private static final int ONE = 0x3f80_0000;
    private static final int LARGEST_SCALE = 253 << 23; // the inverse of a larger one is subnormal

    public TopK {
        if (!(share > 0 && share <= 1)) {
            throw new IllegalArgumentException("expected a share in (0, 1], got " + share);
        }
    }

    /** How many elements of a row travel: at least one of a row that has any. */
    public int kept(int columns) {
        int kept = (int) Math.ceil(share * columns - ROUNDING);
        return Math.clamp(kept, Math.min(1, columns), columns);
    }

    /** Whether a bit for every column says which travel, as that is shorter than their numbers. */
    public boolean hasBitmap(int columns) {
        return columns > POSITIONS || bitmapWords(columns) < positionWords(columns);
    }

    /** Words of a row's values, and of their columns where these follow as numbers. */
    public int elementWords(int columns) {
        return hasBitmap(columns) ? valueWords(columns) : positionWords(columns);
    }

    @Override
    public int words(int columns) {
        return (hasBitmap(columns) ? bitmapWords(columns) : positionWords(columns)) + 1;
    }

    private int valueWords(int columns) {
        return Math.ceilDiv(kept(columns), 2);
    }

    private int bitmapWords(int columns) {
        return valueWords(columns) + Math.ceilDiv(columns, Integer.SIZE);
    }

    private int positionWords(int columns) {
        return kept(columns);
    }

    /**
     * What elements are compared by: the bits of a magnitude; of what is no number, one above the
     * infinite.
     */
    public static int magnitude(float value) {
        return Math.min(Float.floatToRawIntBits(value) & Integer.MAX_VALUE, INFINITE + 1);
    }

    /**
     * The scale of a row.
     *
     * @param largest {@link #magnitude} in it
     */
    public static float scale(int largest) {
        return Float.intBitsToFloat(
                largest >= INFINITE ? ONE : Math.clamp(largest & INFINITE, 1 << 23, LARGEST_SCALE));
    }
}
