package dev.penstock.runtime.gguf;

import java.util.Arrays;
import java.util.Optional;

/** Kinds of values in GGUF's metadata. */
enum GgufKind {
    U8(0, 1),
    I8(1, 1),
    U16(2, 2),
    I16(3, 2),
    U32(4, 4),
    I32(5, 4),
    F32(6, 4),
    BOOL(7, 1),
    STRING(8, 0),
    ARRAY(9, 0),
    U64(10, 8),
    I64(11, 8),
    F64(12, 8);

    private final int id;
    private final int bytes;

    GgufKind(int id, int bytes) {
        this.id = id;
        this.bytes = bytes;
    }

    int id() {
        return id;
    }

    /** Returns the size of a value; 0 if it is not always the same. */
    int bytes() {
        return bytes;
    }

    static Optional<GgufKind> of(int id) {
        return Arrays.stream(values()).filter(kind -> kind.id == id).findFirst();
    }
}
