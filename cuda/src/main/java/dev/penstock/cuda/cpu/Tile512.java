package dev.penstock.cuda.cpu;

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
    void high(int depth, float[] a, int aAt, float[] b, int bAt, float[] c) {
        FloatVector c0a = FloatVector.fromArray(S, c, 0);
        FloatVector c0b = FloatVector.fromArray(S, c, 16);
        FloatVector c1a = FloatVector.fromArray(S, c, 32);
        FloatVector c1b = FloatVector.fromArray(S, c, 48);
        FloatVector c2a = FloatVector.fromArray(S, c, 64);
        FloatVector c2b = FloatVector.fromArray(S, c, 80);
        FloatVector c3a = FloatVector.fromArray(S, c, 96);
        FloatVector c3b = FloatVector.fromArray(S, c, 112);
        FloatVector c4a = FloatVector.fromArray(S, c, 128);
        FloatVector c4b = FloatVector.fromArray(S, c, 144);
        FloatVector c5a = FloatVector.fromArray(S, c, 160);
        FloatVector c5b = FloatVector.fromArray(S, c, 176);
        FloatVector c6a = FloatVector.fromArray(S, c, 192);
        FloatVector c6b = FloatVector.fromArray(S, c, 208);
        FloatVector c7a = FloatVector.fromArray(S, c, 224);
        FloatVector c7b = FloatVector.fromArray(S, c, 240);
        FloatVector c8a = FloatVector.fromArray(S, c, 256);
        FloatVector c8b = FloatVector.fromArray(S, c, 272);
        FloatVector c9a = FloatVector.fromArray(S, c, 288);
        FloatVector c9b = FloatVector.fromArray(S, c, 304);
        FloatVector c10a = FloatVector.fromArray(S, c, 320);
        FloatVector c10b = FloatVector.fromArray(S, c, 336);
        FloatVector c11a = FloatVector.fromArray(S, c, 352);
        FloatVector c11b = FloatVector.fromArray(S, c, 368);
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
        c0a.intoArray(c, 0);
        c0b.intoArray(c, 16);
        c1a.intoArray(c, 32);
        c1b.intoArray(c, 48);
        c2a.intoArray(c, 64);
        c2b.intoArray(c, 80);
        c3a.intoArray(c, 96);
        c3b.intoArray(c, 112);
        c4a.intoArray(c, 128);
        c4b.intoArray(c, 144);
        c5a.intoArray(c, 160);
        c5b.intoArray(c, 176);
        c6a.intoArray(c, 192);
        c6b.intoArray(c, 208);
        c7a.intoArray(c, 224);
        c7b.intoArray(c, 240);
        c8a.intoArray(c, 256);
        c8b.intoArray(c, 272);
        c9a.intoArray(c, 288);
        c9b.intoArray(c, 304);
        c10a.intoArray(c, 320);
        c10b.intoArray(c, 336);
        c11a.intoArray(c, 352);
        c11b.intoArray(c, 368);
    }

    @Override
    void low(int depth, float[] a, int aAt, float[] b, int bAt, float[] c) {
        FloatVector c0a = FloatVector.fromArray(S, c, 0);
        FloatVector c0b = FloatVector.fromArray(S, c, 16);
        FloatVector c1a = FloatVector.fromArray(S, c, 32);
        FloatVector c1b = FloatVector.fromArray(S, c, 48);
        FloatVector c2a = FloatVector.fromArray(S, c, 64);
        FloatVector c2b = FloatVector.fromArray(S, c, 80);
        FloatVector c3a = FloatVector.fromArray(S, c, 96);
        FloatVector c3b = FloatVector.fromArray(S, c, 112);
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
        c0a.intoArray(c, 0);
        c0b.intoArray(c, 16);
        c1a.intoArray(c, 32);
        c1b.intoArray(c, 48);
        c2a.intoArray(c, 64);
        c2b.intoArray(c, 80);
        c3a.intoArray(c, 96);
        c3b.intoArray(c, 112);
    }
}
