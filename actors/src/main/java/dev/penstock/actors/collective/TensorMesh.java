package dev.penstock.actors.collective;

import java.util.List;
import java.util.stream.IntStream;

/**
 * How the tensor shards of a stage lie, where they divide matrices by rows and by columns. A shard
 * is at place (i, j, l), with number {@code (i * columns + j) * depth + l}; those that differ in
 * one of the three alone are a line of that axis.
 *
 * <pre>
 *   2d    q x q       Optimus, arXiv 2104.05343: X[i][j] and W[i][j]
 *   2.5d  q x q x d   Tesseract, arXiv 2105.14500: d such planes, each with other rows of X
 *   3d    q x q x q   arXiv 2105.14450: X[ij][l], W[li][j], and Y[il][j]
 * </pre>
 *
 * X is the residual stream, whose rows are whole sequences; between two matrices of a block is what
 * is called inner here: heads, hidden columns, the vocabulary.
 *
 * @param rows places i
 * @param columns places j, as many
 * @param depth places l: 1 in 2d
 */
public record TensorMesh(Kind kind, int rows, int columns, int depth) {
    /** The axis along which a column of the mesh lies: i changes. */
    public static final int DOWN = 0;

    /** The axis along which a row of the mesh lies: j changes. */
    public static final int ALONG = 1;

    /** The axis from plane to plane: l changes. */
    public static final int THROUGH = 2;

    /** Axes. */
    public static final int AXES = 3;

    /** No mesh: shards divide columns and then rows, and each has all of the stream. */
    public static final TensorMesh NONE = new TensorMesh(Kind.LINE, 1, 1, 1);

    /** What a mesh divides. */
    public enum Kind {
        LINE,
        PLANE,
        LAYERS,
        CUBE
    }

    public TensorMesh {
        boolean suits =
                rows == columns
                        && rows >= 1
                        && switch (kind) {
                            case LINE -> rows == 1 && depth == 1;
                            case PLANE -> depth == 1;
                            case LAYERS -> depth >= 1;
                            case CUBE -> depth == rows;
                        };
        if (!suits) {
            throw new IllegalArgumentException(
                    "expected as many rows as columns, and in 3d as many planes, got %d x %d x %d of kind %s"
                            .formatted(rows, columns, depth, kind));
        }
    }

    /** Whether there is one. */
    public boolean isThere() {
        return kind != Kind.LINE;
    }

    /** Shards of a stage. */
    public int shards() {
        return rows * columns * depth;
    }

    /** Shards on a line of an axis. */
    public int size(int axis) {
        return List.of(rows, columns, depth).get(axis);
    }

    /** A shard's place on an axis. */
    public int at(int shard, int axis) {
        return shard / stride(axis) % size(axis);
    }

    private int stride(int axis) {
        return List.of(columns * depth, depth, 1).get(axis);
    }

    /** The shards of a shard's line of an axis, in order. */
    public List<Integer> line(int shard, int axis) {
        int first = shard - at(shard, axis) * stride(axis);
        return IntStream.range(0, size(axis)).mapToObj(k -> first + k * stride(axis)).toList();
    }

    /** Parts into which columns of the stream, heads, hidden columns and the vocabulary fall. */
    public int side() {
        return columns;
    }

    /** Parts into which a micro-batch's sequences fall. */
    public int sequenceParts() {
        return kind == Kind.CUBE ? rows * columns : rows * depth;
    }

    /** Which sequences of the stream a shard has. */
    public int sequencePart(int shard) {
        return kind == Kind.CUBE
                ? at(shard, DOWN) * columns + at(shard, ALONG)
                : at(shard, THROUGH) * rows + at(shard, DOWN);
    }

    /** Which sequences a shard has of what is inner. */
    public int innerSequencePart(int shard) {
        return kind == Kind.CUBE
                ? at(shard, DOWN) * depth + at(shard, THROUGH)
                : sequencePart(shard);
    }

    /** The axis whose lines have all columns of the same rows of the stream. */
    public int streamAxis() {
        return kind == Kind.CUBE ? THROUGH : ALONG;
    }

    /** Which columns of the stream a shard has. */
    public int streamPart(int shard) {
        return at(shard, streamAxis());
    }

    /** Which heads, hidden columns and tokens of the vocabulary a shard has. */
    public int innerPart(int shard) {
        return at(shard, ALONG);
    }

    /** Parts into which the rows of a matrix fall. */
    public int matrixRowParts() {
        return kind == Kind.CUBE ? rows * rows : rows;
    }

    /**
     * Which rows of a matrix a shard has.
     *
     * @param inward whether it leads from the stream to what is inner
     */
    public int matrixRowPart(int shard, boolean inward) {
        return kind == Kind.CUBE
                ? at(shard, inward ? THROUGH : ALONG) * rows + at(shard, DOWN)
                : at(shard, DOWN);
    }

    /** The axes along which shards hold the same part of a matrix. */
    public List<Integer> copiesOfMatrices() {
        return kind == Kind.LAYERS ? List.of(THROUGH) : List.of();
    }

    /** The axes along which shards hold the same part of a vector of the stream's width. */
    public List<Integer> copiesOfStreamVectors() {
        return switch (kind) {
            case LINE -> List.of();
            case PLANE -> List.of(DOWN);
            case LAYERS -> List.of(DOWN, THROUGH);
            case CUBE -> List.of(DOWN, ALONG);
        };
    }

    /** The axes along which shards hold the same part of a bias of what is inner. */
    public List<Integer> copiesOfInnerVectors() {
        return kind == Kind.CUBE ? List.of(DOWN, THROUGH) : copiesOfStreamVectors();
    }

    /** Whether a shard is the first of those that hold the same, along all of some axes. */
    public boolean isFirst(int shard, List<Integer> axes) {
        return axes.stream().allMatch(axis -> at(shard, axis) == 0);
    }
}
