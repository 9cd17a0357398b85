package dev.penstock.cuda.cpu;

import static dev.penstock.cuda.cpu.vector.Addresses.ALL;
import static dev.penstock.cuda.cpu.vector.Lanes.ORDER;

import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorSpecies;

/**
 * 4 rows by 16 columns in 8 vectors of 256 bits, unrolled by hand: the accumulators must be local
 * variables to stay in registers. AVX2 has 16 of them; with 6 rows they spilled, at half the speed.
 */
final class Tile256 extends Tile {
    private static final VectorSpecies<Float> S = FloatVector.SPECIES_256;

    private Tile256() {
        super(4, 2, 16);
    }

    static Tile create() {
        return new Tile256();
    }

    @Override
    void high(
            int depth,
            float[] a,
            int aAt,
            float[] b,
            int bAt,
            long from,
            long fromRowBytes,
            long to,
            long toRowBytes) {
        long row = from;
        FloatVector c0a = FloatVector.fromMemorySegment(S, ALL, row, ORDER);
        FloatVector c0b = FloatVector.fromMemorySegment(S, ALL, row + 32, ORDER);
        row += fromRowBytes;
        FloatVector c1a = FloatVector.fromMemorySegment(S, ALL, row, ORDER);
        FloatVector c1b = FloatVector.fromMemorySegment(S, ALL, row + 32, ORDER);
        row += fromRowBytes;
        FloatVector c2a = FloatVector.fromMemorySegment(S, ALL, row, ORDER);
        FloatVector c2b = FloatVector.fromMemorySegment(S, ALL, row + 32, ORDER);
        row += fromRowBytes;
        FloatVector c3a = FloatVector.fromMemorySegment(S, ALL, row, ORDER);
        FloatVector c3b = FloatVector.fromMemorySegment(S, ALL, row + 32, ORDER);
        int x = aAt;
        int y = bAt;
        for (int p = 0; p < depth; p++) {
            FloatVector left = FloatVector.fromArray(S, b, y);
            FloatVector right = FloatVector.fromArray(S, b, y + 8);
            FloatVector a0 = FloatVector.broadcast(S, a[x]);
            c0a = a0.fma(left, c0a);
            c0b = a0.fma(right, c0b);
            FloatVector a1 = FloatVector.broadcast(S, a[x + 1]);
            c1a = a1.fma(left, c1a);
            c1b = a1.fma(right, c1b);
            FloatVector a2 = FloatVector.broadcast(S, a[x + 2]);
            c2a = a2.fma(left, c2a);
            c2b = a2.fma(right, c2b);
            FloatVector a3 = FloatVector.broadcast(S, a[x + 3]);
            c3a = a3.fma(left, c3a);
            c3b = a3.fma(right, c3b);
            x += 4;
            y += 16;
        }
        row = to;
        c0a.intoMemorySegment(ALL, row, ORDER);
        c0b.intoMemorySegment(ALL, row + 32, ORDER);
        row += toRowBytes;
        c1a.intoMemorySegment(ALL, row, ORDER);
        c1b.intoMemorySegment(ALL, row + 32, ORDER);
        row += toRowBytes;
        c2a.intoMemorySegment(ALL, row, ORDER);
        c2b.intoMemorySegment(ALL, row + 32, ORDER);
        row += toRowBytes;
        c3a.intoMemorySegment(ALL, row, ORDER);
        c3b.intoMemorySegment(ALL, row + 32, ORDER);
    }

    @Override
    void low(
            int depth,
            float[] a,
            int aAt,
            float[] b,
            int bAt,
            long from,
            long fromRowBytes,
            long to,
            long toRowBytes) {
        long row = from;
        FloatVector c0a = FloatVector.fromMemorySegment(S, ALL, row, ORDER);
        FloatVector c0b = FloatVector.fromMemorySegment(S, ALL, row + 32, ORDER);
        row += fromRowBytes;
        FloatVector c1a = FloatVector.fromMemorySegment(S, ALL, row, ORDER);
        FloatVector c1b = FloatVector.fromMemorySegment(S, ALL, row + 32, ORDER);
        int x = aAt;
        int y = bAt;
        for (int p = 0; p < depth; p++) {
            FloatVector left = FloatVector.fromArray(S, b, y);
            FloatVector right = FloatVector.fromArray(S, b, y + 8);
            FloatVector a0 = FloatVector.broadcast(S, a[x]);
            c0a = a0.fma(left, c0a);
            c0b = a0.fma(right, c0b);
            FloatVector a1 = FloatVector.broadcast(S, a[x + 1]);
            c1a = a1.fma(left, c1a);
            c1b = a1.fma(right, c1b);
            x += 2;
            y += 16;
        }
        row = to;
        c0a.intoMemorySegment(ALL, row, ORDER);
        c0b.intoMemorySegment(ALL, row + 32, ORDER);
        row += toRowBytes;
        c1a.intoMemorySegment(ALL, row, ORDER);
        c1b.intoMemorySegment(ALL, row + 32, ORDER);
    }
}
