package dev.penstock.runtime.safetensors;

import java.util.List;
import java.util.function.Supplier;

/** A tensor made of another, or of nothing. */
record DerivedTensor(
        String name, StoredType type, List<Integer> shape, Supplier<TensorSource.Reading> readings)
        implements TensorSource {
    @Override
    public Reading open() {
        return readings.get();
    }
}
