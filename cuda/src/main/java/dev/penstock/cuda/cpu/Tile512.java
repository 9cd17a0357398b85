package dev.penstock.cuda.cpu;

import static dev.penstock.cuda.cpu.vector.Addresses.ALL;
import static dev.penstock.cuda.cpu.vector.Lanes.ORDER;

import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorSpecies;

/**
 * 12 rows by 32 columns in 24 vectors of 512 bits, unrolled by hand: the accumulators must be local
 * variables to stay in registers.
 */
final class Tile512 extends Tile {
    private static final VectorSpecies<Float> S = FloatVector.SPECIES_512;

    private Tile512() {
        super(12, 4, 32);
    }

    static Tile create() {
        return new Tile512();
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
        FloatVector c0b = FloatVector.fromMemorySegment(S, ALL, row + 64, ORDER);
        row += fromRowBytes;
        FloatVector c1a = FloatVector.fromMemorySegment(S, ALL, row, ORDER);
        FloatVector c1b = FloatVector.fromMemorySegment(S, ALL, row + 64, ORDER);
        row += fromRowBytes;
        FloatVector c2a = FloatVector.fromMemorySegment(S, ALL, row, ORDER);
        FloatVector c2b = FloatVector.fromMemorySegment(S, ALL, row + 64, ORDER);
        row += fromRowBytes;
        FloatVector c3a = FloatVector.fromMemorySegment(S, ALL, row, ORDER);
        FloatVector c3b = FloatVector.fromMemorySegment(S, ALL, row + 64, ORDER);
        row += fromRowBytes;
        FloatVector c4a = FloatVector.fromMemorySegment(S, ALL, row, ORDER);
        FloatVector c4b = FloatVector.fromMemorySegment(S, ALL, row + 64, ORDER);
        row += fromRowBytes;
        FloatVector c5a = FloatVector.fromMemorySegment(S, ALL, row, ORDER);
        FloatVector c5b = FloatVector.fromMemorySegment(S, ALL, row + 64, ORDER);
        row += fromRowBytes;
        FloatVector c6a = FloatVector.fromMemorySegment(S, ALL, row, ORDER);
        FloatVector c6b = FloatVector.fromMemorySegment(S, ALL, row + 64, ORDER);
        row += fromRowBytes;
        FloatVector c7a = FloatVector.fromMemorySegment(S, ALL, row, ORDER);
        FloatVector c7b = FloatVector.fromMemorySegment(S, ALL, row + 64, ORDER);
        row += fromRowBytes;
        FloatVector c8a = FloatVector.fromMemorySegment(S, ALL, row, ORDER);
        FloatVector c8b = FloatVector.fromMemorySegment(S, ALL, row + 64, ORDER);
        row += fromRowBytes;
        FloatVector c9a = FloatVector.fromMemorySegment(S, ALL, row, ORDER);
        FloatVector c9b = FloatVector.fromMemorySegment(S, ALL, row + 64, ORDER);
        row += fromRowBytes;
        FloatVector c10a = FloatVector.fromMemorySegment(S, ALL, row, ORDER);
        FloatVector c10b = FloatVector.fromMemorySegment(S, ALL, row + 64, ORDER);
        row += fromRowBytes;
        FloatVector c11a = FloatVector.fromMemorySegment(S, ALL, row, ORDER);
        FloatVector c11b = FloatVector.fromMemorySegment(S, ALL, row + 64, ORDER);
        int x = aAt;
        int y = bAt;
        for (int p = 0; p < depth; p++) {
            FloatVector left = FloatVector.fromArray(S, b, y);
            FloatVector right = FloatVector.fromArray(S, b, y + 16);
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
            FloatVector a4 = FloatVector.broadcast(S, a[x + 4]);
            c4a = a4.fma(left, c4a);
            c4b = a4.fma(right, c4b);
            FloatVector a5 = FloatVector.broadcast(S, a[x + 5]);
            c5a = a5.fma(left, c5a);
            c5b = a5.fma(right, c5b);
            FloatVector a6 = FloatVector.broadcast(S, a[x + 6]);
            c6a = a6.fma(left, c6a);
            c6b = a6.fma(right, c6b);
            FloatVector a7 = FloatVector.broadcast(S, a[x + 7]);
            c7a = a7.fma(left, c7a);
            c7b = a7.fma(right, c7b);
            FloatVector a8 = FloatVector.broadcast(S, a[x + 8]);
            c8a = a8.fma(left, c8a);
            c8b = a8.fma(right, c8b);
            FloatVector a9 = FloatVector.broadcast(S, a[x + 9]);
            c9a = a9.fma(left, c9a);
            c9b = a9.fma(right, c9b);
            FloatVector a10 = FloatVector.broadcast(S, a[x + 10]);
            c10a = a10.fma(left, c10a);
            c10b = a10.fma(right, c10b);
            FloatVector a11 = FloatVector.broadcast(S, a[x + 11]);
            c11a = a11.fma(left, c11a);
            c11b = a11.fma(right, c11b);
            x += 12;
            y += 32;
        }
        row = to;
        c0a.intoMemorySegment(ALL, row, ORDER);
        c0b.intoMemorySegment(ALL, row + 64, ORDER);
        row += toRowBytes;
        c1a.intoMemorySegment(ALL, row, ORDER);
        c1b.intoMemorySegment(ALL, row + 64, ORDER);
        row += toRowBytes;
        c2a.intoMemorySegment(ALL, row, ORDER);
        c2b.intoMemorySegment(ALL, row + 64, ORDER);
        row += toRowBytes;
        c3a.intoMemorySegment(ALL, row, ORDER);
        c3b.intoMemorySegment(ALL, row + 64, ORDER);
        row += toRowBytes;
        c4a.intoMemorySegment(ALL, row, ORDER);
        c4b.intoMemorySegment(ALL, row + 64, ORDER);
        row += toRowBytes;
        c5a.intoMemorySegment(ALL, row, ORDER);
        c5b.intoMemorySegment(ALL, row + 64, ORDER);
        row += toRowBytes;
        c6a.intoMemorySegment(ALL, row, ORDER);
        c6b.intoMemorySegment(ALL, row + 64, ORDER);
        row += toRowBytes;
        c7a.intoMemorySegment(ALL, row, ORDER);
        c7b.intoMemorySegment(ALL, row + 64, ORDER);
        row += toRowBytes;
        c8a.intoMemorySegment(ALL, row, ORDER);
        c8b.intoMemorySegment(ALL, row + 64, ORDER);
        row += toRowBytes;
        c9a.intoMemorySegment(ALL, row, ORDER);
        c9b.intoMemorySegment(ALL, row + 64, ORDER);
        row += toRowBytes;
        c10a.intoMemorySegment(ALL, row, ORDER);
        c10b.intoMemorySegment(ALL, row + 64, ORDER);
        row += toRowBytes;
        c11a.intoMemorySegment(ALL, row, ORDER);
        c11b.intoMemorySegment(ALL, row + 64, ORDER);
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
        FloatVector c0b = FloatVector.fromMemorySegment(S, ALL, row + 64, ORDER);
        row += fromRowBytes;
        FloatVector c1a = FloatVector.fromMemorySegment(S, ALL, row, ORDER);
        FloatVector c1b = FloatVector.fromMemorySegment(S, ALL, row + 64, ORDER);
        row += fromRowBytes;
        FloatVector c2a = FloatVector.fromMemorySegment(S, ALL, row, ORDER);
        FloatVector c2b = FloatVector.fromMemorySegment(S, ALL, row + 64, ORDER);
        row += fromRowBytes;
        FloatVector c3a = FloatVector.fromMemorySegment(S, ALL, row, ORDER);
        FloatVector c3b = FloatVector.fromMemorySegment(S, ALL, row + 64, ORDER);
        int x = aAt;
        int y = bAt;
        for (int p = 0; p < depth; p++) {
            FloatVector left = FloatVector.fromArray(S, b, y);
            FloatVector right = FloatVector.fromArray(S, b, y + 16);
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
            y += 32;
        }
        row = to;
        c0a.intoMemorySegment(ALL, row, ORDER);
        c0b.intoMemorySegment(ALL, row + 64, ORDER);
        row += toRowBytes;
        c1a.intoMemorySegment(ALL, row, ORDER);
        c1b.intoMemorySegment(ALL, row + 64, ORDER);
        row += toRowBytes;
        c2a.intoMemorySegment(ALL, row, ORDER);
        c2b.intoMemorySegment(ALL, row + 64, ORDER);
        row += toRowBytes;
        c3a.intoMemorySegment(ALL, row, ORDER);
        c3b.intoMemorySegment(ALL, row + 64, ORDER);
    }
}
