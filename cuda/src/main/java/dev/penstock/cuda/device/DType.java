package dev.penstock.cuda.device;

/** Element types of tensors. */
public enum DType {
    /** IEEE single precision. */
    F32(4),
    /** bfloat16: the upper half of an F32, rounded to nearest even. */
    BF16(2),
    /** 32-bit integers: token identifiers. */
    I32(4);

    private final int bytes;

    DType(int bytes) {
        this.bytes = bytes;
    }

    /** Bytes of one element. */
    public int bytes() {
        return bytes;
    }
}
