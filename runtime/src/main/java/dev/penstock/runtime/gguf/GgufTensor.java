package dev.penstock.runtime.gguf;

import dev.penstock.runtime.safetensors.TensorSource;
import java.util.List;

/**
 * A tensor about to be written.
 *
 * @param shape rows first, as everywhere in Penstock; the file has it the other way round
 * @param type in the file: F32, F16, BF16 or Q8_0
 * @param source elements of this shape, of any floating-point type
 */
record GgufTensor(String name, List<Integer> shape, GgufType type, TensorSource source) {
    GgufTensor {
        shape = List.copyOf(shape);
    }

    long elements() {
        return shape.stream().mapToLong(Integer::longValue).reduce(1, Math::multiplyExact);
    }

    long bytes() {
        return type.bytes(elements());
    }
}
