package dev.penstock.cuda.cpu;

/**
 * The innermost part of a matrix product: a tile of c that stays in registers while a panel of a
 * runs against a panel of b. Each element is the scalar chain {@code c = fma(a, b, c)}, k
 * ascending.
 *
 * <p>Panels: a {@code [depth][rows]}, b {@code [depth][columns]}; dense and on the heap, where the
 * compiler proves bounds once. The tile {@code [rows][columns]} is read and written where it lies.
 */
abstract sealed class Tile permits Tile256, Tile512 {
    private final int highRows;
    private final int lowRows;
    private final int columns;

    Tile(int highRows, int lowRows, int columns) {
        this.highRows = highRows;
        this.lowRows = lowRows;
        this.columns = columns;
    }

    /** The tile for vectors of {@code bits}; loads no class but the one wanted. */
    static Tile of(int bits) {
        return bits == 512 ? Tile512.create() : Tile256.create();
    }

    /** Rows of the tile that is fastest. */
    final int highRows() {
        return highRows;
    }

    /** Columns of both tiles: two vectors. */
    final int columns() {
        return columns;
    }

    /** Rows of the next panel when {@code left} rows are left. */
    final int panelRows(int left) {
        return left >= highRows ? highRows : lowRows;
    }

    /**
     * Computes {@code to = from + a b} for {@link #highRows()} rows. The tiles at {@code from} and
     * {@code to} are addresses of their element (0, 0), and may be the same.
     */
    abstract void high(
            int depth,
            float[] a,
            int aAt,
            float[] b,
            int bAt,
            long from,
            long fromRowBytes,
            long to,
            long toRowBytes);

    /** The same for the rows that are left at the lower edge. */
    abstract void low(
            int depth,
            float[] a,
            int aAt,
            float[] b,
            int bAt,
            long from,
            long fromRowBytes,
            long to,
            long toRowBytes);
}
