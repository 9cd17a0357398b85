package dev.penstock.cuda.cpu;

import static dev.penstock.cuda.cpu.vector.Addresses.ALL;
import static dev.penstock.cuda.cpu.vector.Lanes.ORDER;

import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorSpecies;

/**
 * Transposes squares of 16 x 16 floats: stage {@code s} exchanges the off-diagonal halves of all
 * blocks of 2s x 2s, for s = 1, 2, 4, ...
 */
final class Transposer512 extends Transposer {
    private static final VectorSpecies<Float> S = FloatVector.SPECIES_512;
    private static final int LANES = 16;

    /** For each stage, the lanes to take for the upper and the lower vector of a pair. */
    private final float[] upper;

    private final float[] lower;

    Transposer512() {
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
