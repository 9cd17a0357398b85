package dev.penstock.runtime.safetensors;

import java.util.List;

/** What is known of a stored tensor without reading it. */
public interface TensorFacts {
    /** In Hugging Face's GPT-2 naming, or a moment's. */
    String name();

    StoredType type();

    /** Dimensions of the whole; empty for a scalar. */
    List<Integer> shape();

    /** In how many pieces it lies in files. */
    default int parts() {
        return 1;
    }

    /** Number of elements of the whole. */
    default long elements() {
        return shape().stream().mapToLong(Integer::longValue).reduce(1, Math::multiplyExact);
    }

    /** Whether the elements are floating-point numbers. */
    default boolean isFloatingPoint() {
        return switch (type()) {
            case F64, F32, F16, BF16 -> true;
            case I64, I32, I16, I8, U64, U32, U16, U8, BOOL -> false;
        };
    }
}
