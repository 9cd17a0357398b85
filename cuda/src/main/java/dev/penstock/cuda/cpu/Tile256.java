package dev.penstock.cuda.cpu;

import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorSpecies;

/**
 * 6 rows by 16 columns in 12 vectors of 256 bits, unrolled by hand: the accumulators must be local
 * variables to stay in registers.
 */
final class Tile256 extends Tile {
    private static final VectorSpecies<Float> S = FloatVector.SPECIES_256;

    private Tile256() {
        super(6, 2, 16);
    }

    static Tile create() {
        return new Tile256();
    }

    @Override
    void high(int depth, float[] a, int aAt, float[] b, int bAt, float[] c) {
        FloatVector c0a = FloatVector.fromArray(S, c, 0);
        FloatVector c0b = FloatVector.fromArray(S, c, 8);
        FloatVector c1a = FloatVector.fromArray(S, c, 16);
        FloatVector c1b = FloatVector.fromArray(S, c, 24);
        FloatVector c2a = FloatVector.fromArray(S, c, 32);
        FloatVector c2b = FloatVector.fromArray(S, c, 40);
        FloatVector c3a = FloatVector.fromArray(S, c, 48);
        FloatVector c3b = FloatVector.fromArray(S, c, 56);
        FloatVector c4a = FloatVector.fromArray(S, c, 64);
        FloatVector c4b = FloatVector.fromArray(S, c, 72);
        FloatVector c5a = FloatVector.fromArray(S, c, 80);
        FloatVector c5b = FloatVector.fromArray(S, c, 88);
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
            FloatVector a4 = FloatVector.broadcast(S, a[x + 4]);
            c4a = a4.fma(left, c4a);
            c4b = a4.fma(right, c4b);
            FloatVector a5 = FloatVector.broadcast(S, a[x + 5]);
            c5a = a5.fma(left, c5a);
            c5b = a5.fma(right, c5b);
            x += 6;
            y += 16;
        }
        c0a.intoArray(c, 0);
        c0b.intoArray(c, 8);
        c1a.intoArray(c, 16);
        c1b.intoArray(c, 24);
        c2a.intoArray(c, 32);
        c2b.intoArray(c, 40);
        c3a.intoArray(c, 48);
        c3b.intoArray(c, 56);
        c4a.intoArray(c, 64);
        c4b.intoArray(c, 72);
        c5a.intoArray(c, 80);
        c5b.intoArray(c, 88);
    }

    @Override
    void low(int depth, float[] a, int aAt, float[] b, int bAt, float[] c) {
        FloatVector c0a = FloatVector.fromArray(S, c, 0);
        FloatVector c0b = FloatVector.fromArray(S, c, 8);
        FloatVector c1a = FloatVector.fromArray(S, c, 16);
        FloatVector c1b = FloatVector.fromArray(S, c, 24);
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
        c0a.intoArray(c, 0);
        c0b.intoArray(c, 8);
        c1a.intoArray(c, 16);
        c1b.intoArray(c, 24);
    }
}
