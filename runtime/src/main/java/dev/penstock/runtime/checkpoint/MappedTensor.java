package dev.penstock.runtime.checkpoint;

import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.runtime.model.family.StoredPart;
import dev.penstock.runtime.safetensors.StoredTensor;
import dev.penstock.runtime.safetensors.StoredType;
import dev.penstock.runtime.safetensors.TensorSource;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;

/**
 * A parameter that a file keeps in other tensors: each a part of its columns, perhaps with rows and
 * columns exchanged.
 *
 * @param type of all parts, or F32 where they differ
 * @param pieces side by side
 */
record MappedTensor(String name, StoredType type, List<Integer> shape, List<Part> pieces)
        implements TensorSource {
    /** A piece of less than this part of the whole is copied element by element. */
    private static final int WORTH_ALL = 8;

    /** A tensor of the file and its place. */
    record Part(StoredPart place, StoredTensor tensor) {
        /** Returns the index in the file's tensor of an element of the parameter. */
        private long index(long row, long column) {
            long own = column - place.firstColumn();
            return place.transposed() ? own * place.rows() + row : row * place.columns() + own;
        }

        /** Copies all of it to its columns of the whole. */
        private void copyTo(MemorySegment whole, int wide, int bytes) {
            MemorySegment own = tensor.data();
            int columns = place.columns();
            if (place.transposed()) {
                new Exchange(own, 0, place.rows(), whole, place.firstColumn(), wide)
                        .copy(place.rows(), columns, bytes);
                return;
            }
            for (long row = 0; row < place.rows(); row++) {
                MemorySegment.copy(
                        own,
                        row * columns * bytes,
                        whole,
                        (row * wide + place.firstColumn()) * bytes,
                        (long) columns * bytes);
            }
        }

        private int end() {
            return place.firstColumn() + place.columns();
        }
    }

    static MappedTensor of(String name, List<Integer> shape, List<Part> pieces) {
        List<StoredType> types =
                pieces.stream().map(part -> part.tensor().type()).distinct().toList();
        StoredType type = types.size() == 1 ? types.getFirst() : StoredType.F32;
        return new MappedTensor(name, type, shape, List.copyOf(pieces));
    }

    /** Returns the only tensor of a parameter that lies in the file as it is. */
    private boolean isAsStored() {
        return pieces.size() == 1 && !pieces.getFirst().place().transposed();
    }

    private boolean areAlike() {
        return pieces.stream().allMatch(part -> part.tensor().type() == type);
    }

    /** Copies a piece as F32 in the byte order of this machine. */
    void copyTo(TensorPiece piece, MemorySegment target) {
        if (isAsStored()) {
            pieces.getFirst().tensor().copyTo(piece, target);
            return;
        }
        if (areAlike() && piece.elements() > elements() / WORTH_ALL) {
            try (Arena arena = Arena.ofConfined()) {
                read(arena).copyTo(piece, target);
            }
            return;
        }
        piece.walk(
                (inWhole, inPiece, count) ->
                        each(
                                inWhole,
                                count,
                                (part, from, at) ->
                                        target.setAtIndex(
                                                ValueLayout.JAVA_FLOAT,
                                                inPiece + at - inWhole,
                                                (float) part.tensor().real(from))));
    }

    private interface Visitor {
        /**
         * @param from index in the part's tensor
         * @param at index in the parameter
         */
        void element(Part part, long from, long at);
    }

    /** Visits elements that follow each other in the parameter. */
    private void each(long first, long count, Visitor visitor) {
        int wide = shape.getLast();
        long end = first + count;
        long at = first;
        while (at < end) {
            long row = at / wide;
            Part part = partOf((int) (at % wide));
            long stop = Math.min(end, row * wide + part.end());
            for (; at < stop; at++) {
                visitor.element(part, part.index(row, at - row * wide), at);
            }
        }
    }

    private Part partOf(int column) {
        for (Part part : pieces) {
            if (column < part.end()) {
                return part;
            }
        }
        throw new IllegalStateException(name + " has no column " + column);
    }

    /** Returns the whole. */
    StoredTensor read(Arena arena) {
        if (isAsStored()) {
            StoredTensor tensor = pieces.getFirst().tensor();
            return new StoredTensor(name, tensor.type(), shape, tensor.data());
        }
        int bytes = type.bytes();
        MemorySegment whole = arena.allocate(elements() * bytes, 64);
        if (!areAlike()) {
            copyTo(TensorPiece.all(shape), whole);
            return new StoredTensor(name, type, shape, whole);
        }
        pieces.forEach(part -> part.copyTo(whole, shape.getLast(), bytes));
        return new StoredTensor(name, type, shape, whole);
    }

    @Override
    public Reading open() {
        Arena arena = Arena.ofShared();
        return new HeldReading(read(arena).open(), arena);
    }
}
