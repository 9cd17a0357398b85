package dev.penstock.cuda.device;

/**
 * Forms in which all elements of a row travel, each in fewer bits. In a coded row are the elements
 * first, then the row's scale where there is one.
 *
 * <pre>
 *   7 elements   FP16, BF16   01 23 45 6-
 *                INT8         0123 456- scale
 *                INT4         1032547-.6 scale      element 2j in the upper half of byte j
 * </pre>
 */
public enum WireCodec implements RowCodec {
    /** IEEE half precision, rounded to nearest even; from 65,520 on infinite. */
    FP16(16),
    /** The upper half of a float, rounded to nearest even. */
    BF16(16),
    /** Integers from -127 to 127 times a scale, which is the row's largest magnitude / 127. */
    INT8(8),
    /** Integers from -7 to 7 times a scale, which is the row's largest magnitude / 7. */
    INT4(4);

    private final int bits;

    WireCodec(int bits) {
        this.bits = bits;
    }

    /** Bits of an element. */
    public int bits() {
        return bits;
    }

    /** Whether a row has a scale. */
    public boolean isScaled() {
        return bits <= 8;
    }

    /** The largest integer of a scaled row. */
    public int largest() {
        return (1 << (bits - 1)) - 1;
    }

    @Override
    public int words(int columns) {
        return Math.ceilDiv(columns * bits, Integer.SIZE) + (isScaled() ? 1 : 0);
    }

    /**
     * The scale of a row whose largest magnitude is this: 0 where it would be no normal float, and
     * then the row is zero. Not finite where an element is not, so that none gets lost.
     */
    public float scale(float magnitude) {
        float scale = magnitude / largest();
        return scale < Float.MIN_NORMAL ? 0 : scale;
    }
}
