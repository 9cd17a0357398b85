package dev.penstock.cuda.cpu;

import dev.penstock.cuda.cpu.vector.Lanes;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorSpecies;

/**
 * Transposes squares of lanes x lanes floats: stage {@code s} exchanges the off-diagonal halves of
 * all blocks of 2s x 2s, for s = 1, 2, 4, ...
 */
final class Transposer {
    private final Lanes vectors;
    private final int lanes;

    /** For each stage, the lanes to take for the upper and the lower vector of a pair. */
    private final float[] upper;

    private final float[] lower;

    Transposer(Lanes vectors) {
        this.vectors = vectors;
        this.lanes = vectors.count();
        int stages = Integer.numberOfTrailingZeros(lanes);
        this.upper = new float[stages * lanes];
        this.lower = new float[stages * lanes];
        for (int stage = 0; stage < stages; stage++) {
            int distance = 1 << stage;
            for (int i = 0; i < lanes; i++) {
                boolean odd = (i & distance) != 0;
                upper[stage * lanes + i] = odd ? lanes + (i ^ distance) : i;
                lower[stage * lanes + i] = odd ? lanes + i : i ^ distance;
            }
        }
    }

    /**
     * Reads {@code rows} (at most lanes) rows of lanes floats at {@code address} and writes their
     * transpose: lanes rows of lanes floats, {@code stride} apart, each overwriting what the row
     * before spilled beyond the stride.
     */
    void transpose(
            long address,
            long rowBytes,
            int rows,
            float[] square,
            float[] to,
            int toAt,
            int stride) {
        VectorSpecies<Float> s = vectors.species();
        for (int i = 0; i < rows; i++) {
            vectors.load(address + i * rowBytes).intoArray(square, i * lanes);
        }
        for (int distance = 1, stage = 0; distance < lanes; distance <<= 1, stage++) {
            exchange(square, distance, stage * lanes);
        }
        for (int i = 0; i < lanes; i++) {
            FloatVector.fromArray(s, square, i * lanes).intoArray(to, toAt + i * stride);
        }
    }

    private void exchange(float[] square, int distance, int stageAt) {
        VectorSpecies<Float> s = vectors.species();
        FloatVector up = FloatVector.fromArray(s, upper, stageAt);
        FloatVector low = FloatVector.fromArray(s, lower, stageAt);
        for (int pair = 0; pair < lanes / 2; pair++) {
            int i = ((pair & -distance) << 1 | (pair & (distance - 1))) * lanes;
            int j = i + distance * lanes;
            FloatVector a = FloatVector.fromArray(s, square, i);
            FloatVector b = FloatVector.fromArray(s, square, j);
            up.selectFrom(a, b).intoArray(square, i);
            low.selectFrom(a, b).intoArray(square, j);
        }
    }
}
