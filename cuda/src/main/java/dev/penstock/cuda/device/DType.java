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

    /** The least elements from one row to the next: for I8 with room for the scale. */
    public int rowStride(int columns) {
        return this == I8 ? (columns + 7) & -4 : columns;
    }
}
