package dev.penstock.cuda.device;

/**
 * Numbers of gradients as 64-bit integers, so that their sums are exact and do not depend on who
 * adds them or in which order: {@code integer = g * 2^44}, rounded to nearest, ties to even.
 *
 * <p>44 bits behind the point: an error of at most 3e-14 in every addend is far below the 1e-8 that
 * AdamW adds to the root of a square, and above 1e-6 an F32 is coarser anyway. 18 bits before it
 * are left for the sum: since the addends of a step are divided by its tokens before they are
 * added, the mean of a micro-batch's own tokens may be anything up to 2^18 = 262,144.
 */
public final class FixedPoint {
    /** Bits behind the point. */
    public static final int FRACTION_BITS = 44;

    /** The integer of 1. */
    public static final double ONE = 0x1p44;

    /** Bits of the largest sum: one less than a long has, so that sums are never near its end. */
    private static final int SUM_BITS = 62;

    /** The addends of the longest sum. */
    public static final long MOST_ADDENDS = 1L << (SUM_BITS - FRACTION_BITS);

    private FixedPoint() {}

    /**
     * Returns the largest magnitude of an addend with which no sum of so many can overflow,
     * whatever the order: a power of two.
     */
    public static float limit(long addends) {
        if (addends < 1 || addends > MOST_ADDENDS) {
            throw new IllegalArgumentException(
                    "expected 1 to %,d addends of a fixed-point sum, got %,d"
                            .formatted(MOST_ADDENDS, addends));
        }
        int bitsOfCount = Long.SIZE - Long.numberOfLeadingZeros(addends - 1);
        return Math.scalb(1f, SUM_BITS - FRACTION_BITS - bitsOfCount);
    }

    /** Returns the integer of a number within the limit. */
    public static long of(float number) {
        return (long) Math.rint(number * ONE);
    }

    /** Returns the F32 nearest to an integer's number. */
    public static float value(long integer) {
        return (float) integer * 0x1p-44f;
    }
}
