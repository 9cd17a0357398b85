package dev.penstock.runtime.checkpoint;

import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.runtime.safetensors.StoredTensor;
import dev.penstock.runtime.safetensors.StoredType;
import dev.penstock.runtime.safetensors.TensorFacts;
import dev.penstock.runtime.safetensors.TensorSource;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/** A tensor of a checkpoint: whole in one file, or in pieces written by several ranks. */
final class SavedTensor implements TensorFacts {
    /**
     * The part of it in one file.
     *
     * @param stored the elements; a vector if they are not the whole
     */
    record Piece(Path file, TensorPiece place, StoredTensor stored) {}

    private final List<Piece> pieces = new ArrayList<>();

    void add(Piece piece) {
        pieces.add(piece);
    }

    List<Piece> pieces() {
        return pieces;
    }

    @Override
    public String name() {
        return pieces.getFirst().stored().name();
    }

    @Override
    public StoredType type() {
        return pieces.getFirst().stored().type();
    }

    @Override
    public List<Integer> shape() {
        return pieces.getFirst().place().whole();
    }

    @Override
    public int parts() {
        return pieces.size();
    }

    /** The files that {@link #copyTo} reads. */
    List<Path> filesOf(TensorPiece wanted) {
        return piecesOf(wanted).map(Piece::file).toList();
    }

    /** The one that is wanted if there is one, else all. */
    private Stream<Piece> piecesOf(TensorPiece wanted) {
        Optional<Piece> same =
                pieces.stream().filter(piece -> piece.place().equals(wanted)).findFirst();
        return same.map(Stream::of).orElseGet(pieces::stream);
    }

    /** Copies elements as F32 in the byte order of this machine; all pieces are present. */
    void copyTo(TensorPiece wanted, MemorySegment target) {
        Optional<Piece> same =
                pieces.stream().filter(piece -> piece.place().equals(wanted)).findFirst();
        if (same.isPresent()) {
            same.get().stored().copyTo(target.asSlice(0, wanted.elements() * Float.BYTES));
            return;
        }
        try (Arena arena = Arena.ofConfined()) {
            read(arena).copyTo(wanted, target);
        }
    }

    /**
     * Returns the whole tensor, in place if it is stored whole.
     *
     * @param arena provides the memory if it must be put together
     */
    StoredTensor read(Arena arena) {
        Piece first = pieces.getFirst();
        if (first.place().isWhole()) {
            return first.stored();
        }
        MemorySegment whole = arena.allocate(elements() * Float.BYTES);
        for (Piece piece : pieces) {
            piece.place().insert(floats(piece, arena), whole);
        }
        return new StoredTensor(name(), StoredType.F32, shape(), whole);
    }

    private static MemorySegment floats(Piece piece, Arena arena) {
        if (piece.stored().type() == StoredType.F32) {
            return piece.stored().data();
        }
        MemorySegment floats = arena.allocate(piece.place().elements() * Float.BYTES);
        piece.stored().copyTo(floats);
        return floats;
    }

    /**
     * Returns the whole as F32 or as it is stored; pieces are put together one tensor at a time.
     */
    TensorSource source() {
        Piece first = pieces.getFirst();
        return first.place().isWhole() ? first.stored() : new Joined(this);
    }

    private record Joined(SavedTensor tensor) implements TensorSource {
        @Override
        public String name() {
            return tensor.name();
        }

        @Override
        public StoredType type() {
            return StoredType.F32;
        }

        @Override
        public List<Integer> shape() {
            return tensor.shape();
        }

        @Override
        public Reading open() {
            Arena arena = Arena.ofConfined();
            Reading whole = tensor.read(arena).open();
            return new Reading() {
                @Override
                public MemorySegment next(int bytes, MemorySegment buffer) {
                    return buffer.asSlice(0, bytes).copyFrom(whole.next(bytes, buffer));
                }

                @Override
                public void close() {
                    arena.close();
                }
            };
        }
    }

    /**
     * Returns the reason why the pieces do not make up the whole with each of its elements once.
     */
    Optional<String> problem() {
        Piece first = pieces.getFirst();
        for (Piece piece : pieces) {
            if (!piece.place().whole().equals(shape()) || piece.stored().type() != type()) {
                return Optional.of(
                        "%s: %s %s in %s, but %s %s in %s"
                                .formatted(
                                        name(),
                                        type(),
                                        shape(),
                                        first.file().getFileName(),
                                        piece.stored().type(),
                                        piece.place().whole(),
                                        piece.file().getFileName()));
            }
        }
        return pieces.size() == 1 && first.place().isWhole() ? Optional.empty() : coverage();
    }

    private record Run(long from, long to, Piece piece) {}

    private Optional<String> coverage() {
        List<Run> runs = new ArrayList<>();
        for (Piece piece : pieces) {
            piece.place()
                    .walk(
                            (inWhole, _, count) -> {
                                if (runs.size() <= PieceNote.MOST_RUNS) {
                                    runs.add(new Run(inWhole, inWhole + count, piece));
                                }
                            });
        }
        if (runs.size() > PieceNote.MOST_RUNS) {
            return Optional.of(
                    "%s %s: its pieces are cut into more than %,d runs of elements"
                            .formatted(name(), shape(), PieceNote.MOST_RUNS));
        }
        runs.sort(Comparator.comparingLong(Run::from));
        long end = elements();
        Run last = new Run(0, 0, pieces.getFirst());
        for (Run run : runs) {
            if (run.from() > last.to()) {
                return Optional.of(hole(last.to(), run.from()));
            }
            if (run.from() < last.to()) {
                return Optional.of(
                        "%s %s: elements %d to %d are in %s and in %s"
                                .formatted(
                                        name(),
                                        shape(),
                                        run.from(),
                                        Math.min(run.to(), last.to()) - 1,
                                        last.piece().file().getFileName(),
                                        run.piece().file().getFileName()));
            }
            last = run;
        }
        return last.to() == end ? Optional.empty() : Optional.of(hole(last.to(), end));
    }

    private String hole(long from, long to) {
        return "%s %s: elements %d to %d are in no file".formatted(name(), shape(), from, to - 1);
    }
}
