package dev.penstock.cuda.cpu.vector;

import jdk.incubator.vector.FloatVector;

/**
 * Turns a head by the angles of its position: column j with column {@code j + half}, or with its
 * neighbour.
 */
public final class RotaryKernels {
    private final Lanes lanes;

    public RotaryKernels(Lanes lanes) {
        this.lanes = lanes;
    }

    /**
     * Turns one head in place.
     *
     * @param turn {@code half} cosines, then as many sines
     * @param sign 1, or -1 to turn back
     */
    public void turn(long x, long turn, int half, float sign) {
        int step = lanes.count();
        int whole = lanes.whole(half);
        long other = 4L * half;
        for (int i = 0; i < whole; i += step) {
            long first = x + 4L * i;
            FloatVector cosine = lanes.load(turn + 4L * i);
            FloatVector sine = lanes.load(turn + other + 4L * i).mul(sign);
            FloatVector x1 = lanes.load(first);
            FloatVector x2 = lanes.load(first + other);
            x1.mul(cosine).sub(x2.mul(sine)).intoMemorySegment(Addresses.ALL, first, Lanes.ORDER);
            x2.mul(cosine)
                    .add(x1.mul(sine))
                    .intoMemorySegment(Addresses.ALL, first + other, Lanes.ORDER);
        }
        for (int i = whole; i < half; i++) {
            long first = x + 4L * i;
            float cosine = Addresses.getFloat(turn + 4L * i);
            float sine = Addresses.getFloat(turn + other + 4L * i) * sign;
            float x1 = Addresses.getFloat(first);
            float x2 = Addresses.getFloat(first + other);
            Addresses.setFloat(first, x1 * cosine - x2 * sine);
            Addresses.setFloat(first + other, x2 * cosine + x1 * sine);
        }
    }

    /** Same as {@link #turn} of columns {@code 2j} and {@code 2j + 1}, one pair at a time. */
    public void turnNeighbours(long x, long turn, int half, float sign) {
        long other = 4L * half;
        for (int i = 0; i < half; i++) {
            long first = x + 8L * i;
            float cosine = Addresses.getFloat(turn + 4L * i);
            float sine = Addresses.getFloat(turn + other + 4L * i) * sign;
            float x1 = Addresses.getFloat(first);
            float x2 = Addresses.getFloat(first + 4);
            Addresses.setFloat(first, x1 * cosine - x2 * sine);
            Addresses.setFloat(first + 4, x2 * cosine + x1 * sine);
        }
    }
}
