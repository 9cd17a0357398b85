package dev.penstock.cuda.cpu.vector;

import dev.penstock.cuda.kernels.Dynamic8;
import java.lang.foreign.ValueLayout;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorOperators;

/** Conversions of blocks between F32 and the codes of {@link Dynamic8}. */
public final class Dynamic8Kernels {
    private final Lanes lanes;
    private final Dynamic8 codes;
    private final float[] values = new float[256];

    public Dynamic8Kernels(Lanes lanes, Dynamic8 codes) {
        this.lanes = lanes;
        this.codes = codes;
        for (int code = 0; code < values.length; code++) {
            values[code] = codes.value((byte) code);
        }
    }

    /**
     * A block of codes to F32.
     *
     * @param scale of the block
     */
    public void widen(long from, float scale, long to, int n) {
        float[] table = values;
        for (int i = 0; i < n; i++) {
            int code = Addresses.ALL.get(ValueLayout.JAVA_BYTE, from + i) & 0xff;
            Addresses.setFloat(to + 4L * i, table[code] * scale);
        }
    }

    /**
     * F32 to a block of codes.
     *
     * @param from floats, undefined afterwards
     * @return the scale
     */
    public float narrow(long from, long to, int n) {
        float scale = scale(from, n);
        if (scale == 0) {
            Addresses.clear(to, n);
            return scale;
        }
        int whole = lanes.whole(n);
        FloatVector divisor = lanes.broadcast(scale);
        for (int i = 0; i < whole; i += lanes.count()) {
            long at = from + 4L * i;
            lanes.load(at).div(divisor).intoMemorySegment(Addresses.ALL, at, Lanes.ORDER);
        }
        for (int i = whole; i < n; i++) {
            Addresses.setFloat(from + 4L * i, Addresses.getFloat(from + 4L * i) / scale);
        }
        for (int i = 0; i < n; i++) {
            byte code = codes.code(Addresses.getFloat(from + 4L * i));
            Addresses.ALL.set(ValueLayout.JAVA_BYTE, to + i, code);
        }
        return scale;
    }

    private float scale(long from, int n) {
        FloatVector lowest = lanes.zero();
        FloatVector highest = lanes.zero();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += lanes.count()) {
            FloatVector floats = lanes.load(from + 4L * i);
            lowest = lowest.min(floats);
            highest = highest.max(floats);
        }
        float least = lowest.reduceLanes(VectorOperators.MIN);
        float largest = highest.reduceLanes(VectorOperators.MAX);
        for (int i = whole; i < n; i++) {
            float value = Addresses.getFloat(from + 4L * i);
            least = Math.min(least, value);
            largest = Math.max(largest, value);
        }
        return Dynamic8.scale(least, largest);
    }
}
