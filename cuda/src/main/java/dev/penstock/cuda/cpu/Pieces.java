package dev.penstock.cuda.cpu;

/**
 * How an {@code m x n} result is cut for threads: into {@code rowPieces x columnPieces} rectangles,
 * as square as possible. Pieces keep minimum sizes because a library may take another path, and
 * give other bits, for slivers.
 */
record Pieces(int m, int n, int rowPieces, int columnPieces) {
    private static final int ROW_QUANTUM = 16;
    private static final int COLUMN_QUANTUM = 32;
    private static final int LEAST_ROWS = 16;
    private static final int LEAST_COLUMNS = 128;

    static Pieces of(int m, int n, int threads) {
        int bestRows = 1;
        int bestColumns = 1;
        long bestCost = Long.MAX_VALUE;
        for (int rows = 1; rows <= Math.min(threads, Math.max(1, m / LEAST_ROWS)); rows++) {
            int columns = Math.min(threads / rows, Math.max(1, n / LEAST_COLUMNS));
            long cost = cost(m, n, rows, columns);
            if (cost < bestCost) {
                bestCost = cost;
                bestRows = rows;
                bestColumns = columns;
            }
        }
        return new Pieces(m, n, bestRows, bestColumns);
    }

    /** Area of the largest piece, which bounds the time, plus a little for its outline. */
    private static long cost(int m, int n, int rowPieces, int columnPieces) {
        long height = Math.ceilDiv(m, rowPieces);
        long width = Math.ceilDiv(n, columnPieces);
        return 64 * height * width + height + width;
    }

    int count() {
        return rowPieces * columnPieces;
    }

    int firstRow(int piece) {
        return Share.start(m, ROW_QUANTUM, piece / columnPieces, rowPieces);
    }

    int endRow(int piece) {
        return Share.start(m, ROW_QUANTUM, piece / columnPieces + 1, rowPieces);
    }

    int firstColumn(int piece) {
        return Share.start(n, COLUMN_QUANTUM, piece % columnPieces, columnPieces);
    }

    int endColumn(int piece) {
        return Share.start(n, COLUMN_QUANTUM, piece % columnPieces + 1, columnPieces);
    }
}
