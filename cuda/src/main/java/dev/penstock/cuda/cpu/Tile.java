package dev.penstock.cuda.cpu;

/**
 * The innermost part of a matrix product: a tile of c that stays in registers while a panel of a
 * runs against a panel of b. Each element is the scalar chain {@code c = fma(a, b, c)}, k
 * ascending.
 *
 * <p>Panels: a {@code [depth][rows]}, b {@code [depth][columns]}; the tile {@code [rows][columns]};
 * all dense and on the heap, where the compiler proves bounds once.
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

    /** {@code c += a b} for {@link #highRows()} rows. */
    abstract void high(int depth, float[] a, int aAt, float[] b, int bAt, float[] c);

    /** {@code c += a b} for the rows that are left at the lower edge. */
    abstract void low(int depth, float[] a, int aAt, float[] b, int bAt, float[] c);
}
