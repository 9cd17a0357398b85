package dev.penstock.cuda.cpu;

import static dev.penstock.cuda.cpu.vector.Addresses.ALL;
import static dev.penstock.cuda.cpu.vector.Lanes.ORDER;

import dev.penstock.cuda.cpu.vector.Addresses;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorMask;
import jdk.incubator.vector.VectorShuffle;
import jdk.incubator.vector.VectorSpecies;

/** Packs rows that lie in memory as the columns of a panel. */
abstract sealed class Transposer {

    /** The transposer for vectors of {@code bits}; loads no class but the one wanted. */
    static Transposer of(int bits) {
        return bits == 512 ? new Lanes16() : new Lanes8();
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

    /**
     * Transposes in registers: a pair of vectors exchanges every second lane, then a pair of these
     * every second pair of lanes, then halves. With AVX2 a shuffle of one vector and a blend of two
     * are single instructions; a shuffle of two vectors is many.
     */
    private static final class Lanes8 extends Transposer {
        private static final VectorSpecies<Float> S = FloatVector.SPECIES_256;
        private static final int LANES = 8;
        private static final VectorShuffle<Float> BY_1 = VectorShuffle.fromOp(S, i -> i ^ 1);
        private static final VectorShuffle<Float> BY_2 = VectorShuffle.fromOp(S, i -> i ^ 2);
        private static final VectorShuffle<Float> BY_4 = VectorShuffle.fromOp(S, i -> i ^ 4);
        private static final VectorMask<Float> ODD = VectorMask.fromLong(S, 0b1010_1010);
        private static final VectorMask<Float> ODD_PAIRS = VectorMask.fromLong(S, 0b1100_1100);
        private static final VectorMask<Float> UPPER = VectorMask.fromLong(S, 0b1111_0000);

        @Override
        int whole(
                long from,
                long rowBytes,
                int depth,
                int used,
                int width,
                float[] panel,
                int panelAt,
                float[] square) {
            int whole = depth & -LANES;
            if (width == 4 && used == 4) {
                four(from, rowBytes, whole, panel, panelAt);
            } else if (width >= LANES) {
                long next = used > 4 ? from + 4 * rowBytes : from;
                int left = used > 4 ? used - 4 : used;
                int step = width * LANES;
                for (int p = 0, at = panelAt; p < whole; p += LANES, at += step) {
                    half(from + 4L * p, rowBytes, used, square, 0);
                    half(next + 4L * p, rowBytes, left, square, 4 * LANES);
                    join(square, panel, at, width);
                }
            } else {
                return 0;
            }
            return whole;
        }

        /** Four rows to {@code [depth][4]}. */
        private static void four(long from, long rowBytes, int depth, float[] panel, int panelAt) {
            int to = panelAt;
            for (int p = 0; p < depth; p += LANES) {
                long at = from + 4L * p;
                FloatVector a = FloatVector.fromMemorySegment(S, ALL, at, ORDER);
                at += rowBytes;
                FloatVector b = FloatVector.fromMemorySegment(S, ALL, at, ORDER);
                at += rowBytes;
                FloatVector c = FloatVector.fromMemorySegment(S, ALL, at, ORDER);
                at += rowBytes;
                FloatVector d = FloatVector.fromMemorySegment(S, ALL, at, ORDER);
                FloatVector e = a.blend(b.rearrange(BY_1), ODD);
                FloatVector f = a.rearrange(BY_1).blend(b, ODD);
                FloatVector g = c.blend(d.rearrange(BY_1), ODD);
                FloatVector h = c.rearrange(BY_1).blend(d, ODD);
                a = e.blend(g.rearrange(BY_2), ODD_PAIRS); // columns 0 and 4
                b = f.blend(h.rearrange(BY_2), ODD_PAIRS); // 1 and 5
                c = e.rearrange(BY_2).blend(g, ODD_PAIRS); // 2 and 6
                d = f.rearrange(BY_2).blend(h, ODD_PAIRS); // 3 and 7
                a.blend(b.rearrange(BY_4), UPPER).intoArray(panel, to);
                c.blend(d.rearrange(BY_4), UPPER).intoArray(panel, to + 8);
                a.rearrange(BY_4).blend(b, UPPER).intoArray(panel, to + 16);
                c.rearrange(BY_4).blend(d, UPPER).intoArray(panel, to + 24);
                to += 4 * LANES;
            }
        }

        /**
         * Four rows of eight floats to four vectors with two columns each: 0 and 4, 1 and 5, and so
         * on. For rows that are not there the last one stands in.
         */
        private static void half(long from, long rowBytes, int used, float[] square, int to) {
            long at = from;
            FloatVector a = FloatVector.fromMemorySegment(S, ALL, at, ORDER);
            at += used > 1 ? rowBytes : 0;
            FloatVector b = FloatVector.fromMemorySegment(S, ALL, at, ORDER);
            at += used > 2 ? rowBytes : 0;
            FloatVector c = FloatVector.fromMemorySegment(S, ALL, at, ORDER);
            at += used > 3 ? rowBytes : 0;
            FloatVector d = FloatVector.fromMemorySegment(S, ALL, at, ORDER);
            FloatVector e = a.blend(b.rearrange(BY_1), ODD);
            FloatVector f = a.rearrange(BY_1).blend(b, ODD);
            FloatVector g = c.blend(d.rearrange(BY_1), ODD);
            FloatVector h = c.rearrange(BY_1).blend(d, ODD);
            e.blend(g.rearrange(BY_2), ODD_PAIRS).intoArray(square, to);
            f.blend(h.rearrange(BY_2), ODD_PAIRS).intoArray(square, to + 8);
            e.rearrange(BY_2).blend(g, ODD_PAIRS).intoArray(square, to + 16);
            f.rearrange(BY_2).blend(h, ODD_PAIRS).intoArray(square, to + 24);
        }

        /** Two halves to eight rows of eight. */
        private static void join(float[] square, float[] to, int at, int stride) {
            for (int i = 0; i < 4; i++) {
                FloatVector a = FloatVector.fromArray(S, square, 8 * i);
                FloatVector b = FloatVector.fromArray(S, square, 32 + 8 * i);
                a.blend(b.rearrange(BY_4), UPPER).intoArray(to, at + i * stride);
                a.rearrange(BY_4).blend(b, UPPER).intoArray(to, at + (i + 4) * stride);
            }
        }
    }

    /**
     * Transposes squares of 16 x 16 floats: stage {@code s} exchanges the off-diagonal halves of
     * all blocks of 2s x 2s, for s = 1, 2, 4, ...
     */
    private static final class Lanes16 extends Transposer {
        private static final VectorSpecies<Float> S = FloatVector.SPECIES_512;
        private static final int LANES = 16;

        /** For each stage, the lanes to take for the upper and the lower vector of a pair. */
        private final float[] upper;

        private final float[] lower;

        Lanes16() {
            int stages = Integer.numberOfTrailingZeros(LANES);
            this.upper = new float[stages * LANES];
            this.lower = new float[stages * LANES];
            for (int stage = 0; stage < stages; stage++) {
                int distance = 1 << stage;
                for (int i = 0; i < LANES; i++) {
                    boolean odd = (i & distance) != 0;
                    upper[stage * LANES + i] = odd ? LANES + (i ^ distance) : i;
                    lower[stage * LANES + i] = odd ? LANES + i : i ^ distance;
                }
            }
        }

        /** Each vector overwrites what the row before spilled beyond the panel's width. */
        @Override
        int whole(
                long from,
                long rowBytes,
                int depth,
                int used,
                int width,
                float[] panel,
                int panelAt,
                float[] square) {
            int whole = depth & -LANES;
            for (int p = 0; p < whole; p += LANES) {
                for (int i = 0; i < used; i++) {
                    FloatVector.fromMemorySegment(S, ALL, from + i * rowBytes + 4L * p, ORDER)
                            .intoArray(square, i * LANES);
                }
                for (int distance = 1, stage = 0; distance < LANES; distance <<= 1, stage++) {
                    exchange(square, distance, stage * LANES);
                }
                for (int i = 0; i < LANES; i++) {
                    FloatVector.fromArray(S, square, i * LANES)
                            .intoArray(panel, panelAt + (p + i) * width);
                }
            }
            return whole;
        }

        private void exchange(float[] square, int distance, int stageAt) {
            FloatVector up = FloatVector.fromArray(S, upper, stageAt);
            FloatVector low = FloatVector.fromArray(S, lower, stageAt);
            for (int pair = 0; pair < LANES / 2; pair++) {
                int i = ((pair & -distance) << 1 | (pair & (distance - 1))) * LANES;
                int j = i + distance * LANES;
                FloatVector a = FloatVector.fromArray(S, square, i);
                FloatVector b = FloatVector.fromArray(S, square, j);
                up.selectFrom(a, b).intoArray(square, i);
                low.selectFrom(a, b).intoArray(square, j);
            }
        }
    }
}
