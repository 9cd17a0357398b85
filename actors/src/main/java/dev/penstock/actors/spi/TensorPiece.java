package dev.penstock.actors.spi;

import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * Which elements of a whole tensor a rank holds: strips of it side by side, and of their elements,
 * row by row, perhaps only a stretch. Tensor shards are strips, ZeRO shards are stretches.
 *
 * <pre>
 *   . a b . c d      whole [2, 6] with strips of columns 1..2 and 4..5:
 *   . e f . g h      a b c d e f g h, and its stretch 2 to 5: c d e
 * </pre>
 *
 * @param whole dimensions of the whole tensor, row-major; vectors have one
 * @param strips in the order of the piece's rows, side by side: row r of the piece is row r of the
 *     first strip, then row r of the second, and so on; all have equally many rows
 * @param from first element of the piece among those of the strips
 * @param to one behind its last element
 */
public record TensorPiece(List<Integer> whole, List<Strip> strips, long from, long to) {
    /**
     * A rectangle of the whole seen as rows of its last dimension.
     *
     * @param firstRow of the whole
     * @param rows how many
     * @param firstColumn of the whole
     * @param columns how many
     */
    public record Strip(int firstRow, int rows, int firstColumn, int columns) {
        long elements() {
            return (long) rows * columns;
        }
    }

    public TensorPiece {
        whole = List.copyOf(whole);
        strips = List.copyOf(strips);
        int rows = strips.getFirst().rows();
        long elements = strips.stream().mapToLong(Strip::elements).sum();
        if (strips.stream().anyMatch(strip -> strip.rows() != rows)
                || from < 0
                || to < from
                || to > elements) {
            throw new IllegalArgumentException(
                    "elements %d to %d of strips %s are no piece of %s"
                            .formatted(from, to, strips, whole));
        }
    }

    /** All of a tensor. */
    public static TensorPiece all(List<Integer> shape) {
        return strips(shape, List.of(new Strip(0, rows(shape), 0, shape.getLast())));
    }

    /** Strips side by side. */
    public static TensorPiece strips(List<Integer> whole, List<Strip> strips) {
        long elements = strips.stream().mapToLong(Strip::elements).sum();
        return new TensorPiece(whole, strips, 0, elements);
    }

    /** A stretch of the elements of this piece. */
    public TensorPiece stretch(long first, long end) {
        return new TensorPiece(whole, strips, from + first, from + end);
    }

    /** Elements of the piece. */
    public long elements() {
        return to - from;
    }

    /** Elements of the whole. */
    public long wholeElements() {
        return whole.stream().mapToLong(Integer::longValue).reduce(1, Math::multiplyExact);
    }

    /** Whether this is the whole, in its order. */
    public boolean isWhole() {
        Strip first = strips.getFirst();
        return strips.size() == 1
                && first.rows() == rows(whole)
                && first.columns() == whole.getLast()
                && elements() == wholeElements();
    }

    /** Copies the piece out of the whole; both F32, row-major, dense. */
    public void extract(MemorySegment wholeTensor, MemorySegment piece) {
        walk(
                (inWhole, inPiece, count) ->
                        MemorySegment.copy(
                                wholeTensor, inWhole * 4, piece, inPiece * 4, count * 4));
    }

    /** Copies the piece to its place in the whole. */
    public void insert(MemorySegment piece, MemorySegment wholeTensor) {
        walk(
                (inWhole, inPiece, count) ->
                        MemorySegment.copy(
                                piece, inPiece * 4, wholeTensor, inWhole * 4, count * 4));
    }

    /** Told every run of elements that lie together in whole and piece. */
    public interface RunVisitor {
        /** All in elements. */
        void run(long inWhole, long inPiece, long count);
    }

    /** Visits all runs in the order of the piece, each as long as it can be. */
    public void walk(RunVisitor visitor) {
        long width = strips.stream().mapToLong(Strip::columns).sum();
        if (width == 0) {
            return;
        }
        int wide = whole.getLast();
        int firstRow = Math.toIntExact(from / width);
        long at = firstRow * width;
        long runInWhole = 0;
        long runInPiece = 0;
        long run = 0;
        for (int row = firstRow; row < strips.getFirst().rows() && at < to; row++) {
            for (Strip strip : strips) {
                long first = Math.max(at, from);
                long end = Math.min(at + strip.columns(), to);
                if (first < end) {
                    long start = (long) (strip.firstRow() + row) * wide + strip.firstColumn();
                    long inWhole = start + first - at;
                    if (run > 0 && inWhole != runInWhole + run) {
                        visitor.run(runInWhole, runInPiece, run);
                        run = 0;
                    }
                    runInWhole = run == 0 ? inWhole : runInWhole;
                    runInPiece = run == 0 ? first - from : runInPiece;
                    run += end - first;
                }
                at += strip.columns();
            }
        }
        if (run > 0) {
            visitor.run(runInWhole, runInPiece, run);
        }
    }

    private static int rows(List<Integer> shape) {
        return shape.size() == 1
                ? 1
                : Math.toIntExact(
                        shape.subList(0, shape.size() - 1).stream()
                                .mapToLong(Integer::longValue)
                                .reduce(1, Math::multiplyExact));
    }
}
