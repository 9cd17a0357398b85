package dev.penstock.runtime.safetensors;

import java.util.List;

/** The properties of a stored tensor that are known without reading it. */
public interface TensorFacts {
    /** Returns the name, in Hugging Face's GPT-2 naming, or that of a moment. */
    String name();

    StoredType type();

    /** Returns the dimensions of the whole; empty for a scalar. */
    List<Integer> shape();

    /** Returns in how many pieces it is stored in files. */
    default int parts() {
        return 1;
    }

    /** Returns the number of elements of the whole. */
    default long elements() {
        return shape().stream().mapToLong(Integer::longValue).reduce(1, Math::multiplyExact);
    }

    /** Returns whether the elements are floating-point numbers. */
    default boolean isFloatingPoint() {
        return switch (type()) {
            case F64, F32, F16, BF16 -> true;
            case I64, I32, I16, I8, U64, U32, U16, U8, BOOL -> false;
        };
    }
}
