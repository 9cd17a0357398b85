package dev.penstock.cuda.cpu;

import dev.penstock.cuda.cpu.vector.Addresses;

/** Packs rows that lie in memory as the columns of a panel. */
abstract sealed class Transposer permits Transposer256, Transposer512 {

    /** The transposer for vectors of {@code bits}; loads no class but the one wanted. */
    static Transposer of(int bits) {
        return bits == 512 ? new Transposer512() : new Transposer256();
    }

    /**
     * Writes {@code used} rows (at most lanes) of {@code depth} floats as the first columns of a
     * panel {@code [depth][width]}. Columns up to the lanes, or to the width, may be overwritten.
     *
     * @param square scratch of lanes x lanes
     */
    final void panel(
            long from,
            long rowBytes,
            int depth,
            int used,
            int width,
            float[] panel,
            int panelAt,
            float[] square) {
        int done = whole(from, rowBytes, depth, used, width, panel, panelAt, square);
        for (int i = 0; i < used; i++) {
            long row = from + i * rowBytes;
            int to = panelAt + i;
            for (int p = done; p < depth; p++) {
                panel[to + p * width] = Addresses.getFloat(row + 4L * p);
            }
        }
    }

    /** Does what goes by whole vectors, and returns how much of the depth that was. */
    abstract int whole(
            long from,
            long rowBytes,
            int depth,
            int used,
            int width,
            float[] panel,
            int panelAt,
            float[] square);
}
