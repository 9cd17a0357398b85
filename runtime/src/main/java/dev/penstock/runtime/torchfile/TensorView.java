package dev.penstock.runtime.torchfile;

import dev.penstock.runtime.safetensors.StoredTensor;
import dev.penstock.runtime.safetensors.StoredType;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;

/**
 * A tensor as a view of a storage, checked: all its elements lie inside, and no two are the same,
 * so that a copy of it is no larger than the storage.
 *
 * @param offset first element in the storage
 * @param strides distance of neighbours in each dimension, in elements
 */
record TensorView(
        StoredType type, long offset, List<Integer> shape, List<Long> strides, long elements) {
    static final int MAX_DIMENSIONS = 8;

    /**
     * Checks a view that a file claims.
     *
     * @param bytes size of the storage in the file
     */
    static TensorView of(Pickle.View view, long bytes) throws MalformedException {
        Pickle.Storage storage = view.storage();
        long room = bytes / storage.type().bytes();
        if (storage.elements() < 0 || storage.elements() > room) {
            throw new MalformedException(
                    "storage %s has %d elements of %s by the table, but room for %d"
                            .formatted(storage.key(), storage.elements(), storage.type(), room));
        }
        List<Long> sizes = view.shape();
        boolean sane =
                sizes.size() == view.strides().size()
                        && view.offset() >= 0
                        && view.offset() <= storage.elements()
                        && sizes.stream().allMatch(size -> size >= 0 && size <= Integer.MAX_VALUE)
                        && view.strides().stream()
                                .allMatch(stride -> stride >= 0 && stride <= Integer.MAX_VALUE);
        if (!sane) {
            throw refused(view, "is no view of a storage");
        }
        List<Integer> shape = sizes.stream().map(Math::toIntExact).toList();
        boolean empty = shape.contains(0);
        if (empty) {
            checkProduct(view);
        } else {
            checkExtent(view);
        }
        long elements = shape.stream().mapToLong(i -> i).reduce(1, (a, b) -> a * b);
        return new TensorView(storage.type(), view.offset(), shape, view.strides(), elements);
    }

    /**
     * Sorted by stride, every dimension must step over all that the narrower ones reach. The reach
     * is below the storage's elements throughout, so that nothing overflows.
     */
    private static void checkExtent(Pickle.View view) throws MalformedException {
        List<Integer> byStride =
                IntStream.range(0, view.shape().size())
                        .filter(d -> view.shape().get(d) > 1)
                        .boxed()
                        .sorted(Comparator.comparing(d -> view.strides().get(d)))
                        .toList();
        long reach = 0;
        long left = view.storage().elements() - view.offset();
        for (int dimension : byStride) {
            long stride = view.strides().get(dimension);
            if (stride <= reach) {
                throw refused(view, "has elements that share their place");
            }
            // both factors are below 2^31
            reach += stride * (view.shape().get(dimension) - 1);
            if (reach >= left) {
                break;
            }
        }
        if (reach >= left) {
            throw refused(
                    view, "ends behind its storage of " + view.storage().elements() + " elements");
        }
    }

    /** An empty tensor may claim any shape; those who multiply its dimensions must not overflow. */
    private static void checkProduct(Pickle.View view) throws MalformedException {
        long product = 1;
        for (long size : view.shape()) {
            if (Math.multiplyHigh(product, size) != 0 || product * size < 0) {
                throw refused(view, "has a shape that no tensor has");
            }
            product *= size;
        }
    }

    private static MalformedException refused(Pickle.View view, String what) {
        return new MalformedException(
                "a tensor of %s with strides %s from element %d of storage %s %s"
                        .formatted(
                                view.shape(),
                                view.strides(),
                                view.offset(),
                                view.storage().key(),
                                what));
    }

    /** Returns whether the elements lie in a row, in order. */
    boolean isContiguous() {
        long expected = 1;
        for (int d = shape.size() - 1; d >= 0; d--) {
            if (shape.get(d) > 1 && strides.get(d) != expected) {
                return elements == 0;
            }
            expected *= Math.max(1, shape.get(d));
        }
        return true;
    }

    /** Returns the size of the elements. */
    long bytes() {
        return elements * type.bytes();
    }

    /**
     * Returns the tensor: where it lies, or a copy of elements that do not lie in order.
     *
     * @param arena gives the memory of the copy
     */
    StoredTensor tensor(String name, MemorySegment storage, Arena arena) {
        MemorySegment data =
                isContiguous()
                        ? storage.asSlice(elements == 0 ? 0 : offset * type.bytes(), bytes())
                        : copy(storage, arena);
        return new StoredTensor(name, type, shape, data);
    }

    private MemorySegment copy(MemorySegment storage, Arena arena) {
        MemorySegment copy = arena.allocate(bytes(), Long.BYTES);
        List<Integer> index = new ArrayList<>(shape.stream().map(_ -> 0).toList());
        int width = type.bytes();
        long from = offset;
        for (long to = 0; to < elements; to++) {
            MemorySegment.copy(storage, from * width, copy, to * width, width);
            for (int d = shape.size() - 1; d >= 0; d--) {
                int next = index.get(d) + 1;
                from += strides.get(d);
                if (next < shape.get(d)) {
                    index.set(d, next);
                    break;
                }
                index.set(d, 0);
                from -= strides.get(d) * shape.get(d);
            }
        }
        return copy;
    }
}
