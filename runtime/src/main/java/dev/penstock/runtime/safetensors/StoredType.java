package dev.penstock.runtime.safetensors;

/** Element types of the safetensors format; the constants are named as the files name them. */
public enum StoredType {
    F64(8),
    F32(4),
    F16(2),
    BF16(2),
    I64(8),
    I32(4),
    I16(2),
    I8(1),
    U64(8),
    U32(4),
    U16(2),
    U8(1),
    BOOL(1);

    private final int bytes;

    StoredType(int bytes) {
        this.bytes = bytes;
    }

    /** Returns the bytes of one element. */
    public int bytes() {
        return bytes;
    }
}
