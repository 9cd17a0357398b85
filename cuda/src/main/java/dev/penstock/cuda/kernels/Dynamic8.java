package dev.penstock.cuda.kernels;

import dev.penstock.cuda.device.DType;

/**
 * The 256 values that a byte can stand for in a block with one scale: dynamic tree quantisation
 * (Dettmers et al. 2022, arXiv 2110.02861, sections 2.1 and 2.2). They span seven decades, the
 * upper ones in finer steps:
 *
 * <pre>
 *   decade  10^-7..10^-6  10^-6..10^-5  ..  0.1..1
 *   values        1             2       ..    64      with a sign
 *                 2             4       ..   128      without one
 * </pre>
 *
 * <p>of which each is the middle of an equal part of its decade; besides them there are 0 and 1.
 * The zero byte is 0. Other than in the paper, a block's scale is its element of the largest
 * magnitude with its sign, so that this element is always 1 and kept exactly: a block that was
 * coded, decoded and coded again has the same bytes. And without a sign, only 0 is coded as 0: a
 * second moment that vanishes beside a first one that does not would make an update of any size (Li
 * et al. 2023, arXiv 2309.01507, section 3).
 */
public final class Dynamic8 {
    /**
     * Elements that have one scale: few enough that what divides tensors among ranks leaves blocks
     * whole, and that elements of different size seldom meet; for 1.6 % of memory.
     */
    public static final int BLOCK = 256;

    /** With a sign: for first moments. */
    public static final Dynamic8 SIGNED = new Dynamic8(true);

    /** From 0 on: for second moments. */
    public static final Dynamic8 POSITIVE = new Dynamic8(false);

    private static final int DECADES = 7;

    /** Below this, products with a scale would not be normal: a block is 0 then. */
    private static final float LEAST_SCALE = 0x1p-100f;

    /** The bits of a float that tell its bucket: exponent and 8 bits of the fraction. */
    private static final int BUCKET_SHIFT = 15;

    /** Of 2^-24, below which everything is nearest to 0. */
    private static final int FIRST_BUCKET = 103 << 8;

    private static final int BUCKETS = (24 << 8) + 1;

    private final boolean signed;

    /** By code. */
    private final float[] values = new float[256];

    /** What magnitudes there are, rising from 0 to 1. */
    private final float[] magnitudes;

    /**
     * The bits of the largest float that is nearer to magnitude i than to the next, or half way.
     */
    private final int[] bounds;

    /**
     * The magnitude nearest to the least float of a bucket, in which there is one bound at most.
     */
    private final short[] nearest = new short[BUCKETS];

    private Dynamic8(boolean signed) {
        this.signed = signed;
        magnitudes = magnitudes(signed ? 1 : 2);
        bounds = bounds(magnitudes);
        for (int i = 0; i < magnitudes.length; i++) {
            values[i] = magnitudes[i];
        }
        for (int i = 1; signed && i < 128; i++) {
            values[256 - i] = -magnitudes[i];
        }
        int index = 0;
        for (int bucket = 0; bucket < BUCKETS; bucket++) {
            float least = Float.intBitsToFloat((bucket + FIRST_BUCKET) << BUCKET_SHIFT);
            while (Float.floatToRawIntBits(least) > bounds[index]) {
                index++;
            }
            nearest[bucket] = (short) index;
        }
    }

    private static float[] magnitudes(int ofLowestDecade) {
        float[] magnitudes = new float[ofLowestDecade * ((1 << DECADES) - 1) + 2];
        int next = 1;
        for (int decade = 0; decade < DECADES; decade++) {
            int parts = ofLowestDecade << decade;
            double top = StrictMath.pow(10, decade - (DECADES - 1.0));
            for (int part = 0; part < parts; part++) {
                magnitudes[next++] = (float) (top * (0.1 + 0.9 * (part + 0.5) / parts));
            }
        }
        magnitudes[next] = 1;
        return magnitudes;
    }

    private static int[] bounds(float[] magnitudes) {
        int[] bounds = new int[magnitudes.length];
        for (int i = 0; i + 1 < bounds.length; i++) {
            double middle = ((double) magnitudes[i] + magnitudes[i + 1]) / 2;
            float bound = (float) middle;
            bounds[i] = Float.floatToRawIntBits(bound > middle ? Math.nextDown(bound) : bound);
        }
        bounds[bounds.length - 1] = Integer.MAX_VALUE;
        return bounds;
    }

    /** The codes of tensors of a type that has such. */
    public static Dynamic8 of(DType type) {
        return switch (type) {
            case DYNAMIC8 -> SIGNED;
            case DYNAMIC8_POSITIVE -> POSITIVE;
            case F32, BF16, F16, I32, I8, I64 ->
                    throw new IllegalArgumentException("expected 8-bit codes, got " + type);
        };
    }

    /** What a code stands for where the scale is 1. */
    public float value(byte code) {
        return values[code & 0xff];
    }

    /**
     * The scale of a block of which these are the least and the largest element: the one of the
     * larger magnitude, of two that are equal the positive one; 0 where all elements count as 0.
     */
    public static float scale(float least, float largest) {
        float scale = largest >= -least ? largest : least;
        if (Math.abs(scale) < LEAST_SCALE) {
            return 0;
        }
        return Math.clamp(scale, -Float.MAX_VALUE, Float.MAX_VALUE);
    }

    /**
     * The code whose value is nearest to an element divided by its scale; half way, the one of the
     * smaller magnitude.
     *
     * @param quotient from -1 to 1; not negative without a sign
     */
    public byte code(float quotient) {
        int bits = Float.floatToRawIntBits(quotient);
        int sign = bits >> 31;
        int magnitude = bits & Integer.MAX_VALUE; // of floats above 0 integers have the order
        int bucket = Math.clamp((magnitude >> BUCKET_SHIFT) - FIRST_BUCKET, 0, BUCKETS - 1);
        int index = nearest[bucket];
        index +=
                (bounds[index] - magnitude) >>> 31; // a branch would be guessed wrong half the time
        return (byte)
                (signed
                        ? (Math.min(index, 128 + sign) ^ sign) - sign
                        : Math.max(index, -magnitude >>> 31));
    }
}
