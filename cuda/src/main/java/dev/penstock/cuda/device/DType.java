package dev.penstock.cuda.device;

/** Element types of tensors. */
public enum DType {
    /** IEEE single precision. */
    F32(4),
    /** bfloat16: the upper half of an F32, rounded to nearest even. */
    BF16(2),
    /** IEEE half precision, rounded to nearest even; from 65,520 on infinite. On CPUs alone. */
    F16(2),
    /** 32-bit integers: token identifiers. */
    I32(4),
    /**
     * 8-bit integers from -127 to 127 in rows with a scale each: an element is integer x scale. The
     * scale, an F32, lies in the last four bytes of the row's stride ({@link #rowStride}), so a
     * tensor has whole rows. For weights of matrix products and tables that only a CPU reads.
     */
    I8(1),
    /**
     * 8-bit codes of blocks of a flat row, a block in each row of the tensor with its scale where
     * those of I8 have it: an element is the value of its code x scale. For first moments of an
     * optimizer that a CPU runs.
     */
    DYNAMIC8(1),
    /** Same as {@link #DYNAMIC8} with codes of what is never negative: second moments. */
    DYNAMIC8_POSITIVE(1),
    /** 64-bit integers: exact sums of gradients, see {@link FixedPoint}. */
    I64(8);

    private final int bytes;

    DType(int bytes) {
        this.bytes = bytes;
    }

    /** Bytes of one element. */
    public int bytes() {
        return bytes;
    }

    /** Whether elements are in units of a scale that their row has. */
    public boolean isScaled() {
        return this == I8 || isDynamic();
    }

    /** Whether elements are codes that stand for values. */
    public boolean isDynamic() {
        return this == DYNAMIC8 || this == DYNAMIC8_POSITIVE;
    }

    /** The least elements from one row to the next: with room for the scale where there is one. */
    public int rowStride(int columns) {
        return isScaled() ? (columns + 7) & -4 : columns;
    }
}
