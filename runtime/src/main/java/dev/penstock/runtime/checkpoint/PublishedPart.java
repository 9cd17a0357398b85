package dev.penstock.runtime.checkpoint;

import dev.penstock.runtime.model.family.StoredPart;
import dev.penstock.runtime.safetensors.StoredTensor;
import dev.penstock.runtime.safetensors.StoredType;
import dev.penstock.runtime.safetensors.TensorSource;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * A tensor of a model as its family publishes it, taken out of the parameter that holds it. The
 * parameter is in memory only while the tensor is read.
 */
record PublishedPart(StoredPart part, StoredType type, ModelTensors source)
        implements TensorSource {
    /**
     * @param source has the parameter
     */
    static PublishedPart of(StoredPart part, ModelTensors source) {
        return new PublishedPart(part, source.find(part.parameter()).orElseThrow().type(), source);
    }

    @Override
    public String name() {
        return part.name();
    }

    @Override
    public List<Integer> shape() {
        return part.shape();
    }

    /** Returns the tensor; it lives as long as the arena. */
    StoredTensor read(Arena arena) {
        StoredTensor whole = source.read(part.parameter(), arena).orElseThrow();
        int wide = whole.shape().getLast();
        if (!part.transposed() && part.columns() == wide) {
            return new StoredTensor(name(), type, shape(), whole.data());
        }
        MemorySegment own = arena.allocate(elements() * type.bytes(), 64);
        int bytes = type.bytes();
        if (part.transposed()) {
            new Exchange(whole.data(), part.firstColumn(), wide, own, 0, part.rows())
                    .copy(/* rows= */ part.columns(), /* columns= */ part.rows(), bytes);
        } else {
            for (long row = 0; row < part.rows(); row++) {
                MemorySegment.copy(
                        whole.data(),
                        (row * wide + part.firstColumn()) * bytes,
                        own,
                        row * part.columns() * bytes,
                        (long) part.columns() * bytes);
            }
        }
        return new StoredTensor(name(), type, shape(), own);
    }

    /** A tensor that is a parameter as it stands is not held. */
    @Override
    public Reading open() {
        boolean whole =
                source.find(part.parameter()).orElseThrow().shape().equals(part.shape())
                        && !part.transposed();
        if (whole) {
            return source.source(part.parameter()).orElseThrow().open();
        }
        Arena arena = Arena.ofShared();
        return new HeldReading(read(arena).open(), arena);
    }
}
