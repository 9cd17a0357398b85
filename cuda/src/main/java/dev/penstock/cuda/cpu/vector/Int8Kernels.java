package dev.penstock.cuda.cpu.vector;

import static jdk.incubator.vector.VectorOperators.B2F;

import dev.penstock.cuda.kernels.Int8;
import java.lang.foreign.ValueLayout;
import jdk.incubator.vector.ByteVector;
import jdk.incubator.vector.FloatVector;

/** Conversions of rows between F32 and I8. */
public final class Int8Kernels {
    private final Lanes lanes;

    public Int8Kernels(Lanes lanes) {
        this.lanes = lanes;
    }

    /** Where the scale of a row of I8 lies. */
    public static long scaleAt(long row, int stride) {
        return row + stride - Float.BYTES;
    }

    /**
     * A row of F32 to I8 with its scale.
     *
     * @param stride of the I8 row
     */
    public void narrow(long from, long to, int n, int stride) {
        float largest = 0;
        for (int i = 0; i < n; i++) {
            largest = Math.max(largest, Math.abs(Addresses.getFloat(from + 4L * i)));
        }
        float scale = Int8.scale(largest);
        for (int i = 0; i < n; i++) {
            byte integer = Int8.of(Addresses.getFloat(from + 4L * i), scale);
            Addresses.ALL.set(ValueLayout.JAVA_BYTE, to + i, integer);
        }
        Addresses.setFloat(scaleAt(to, stride), scale);
    }

    /** Elements of a row of I8 to F32, each rounded once. */
    public void widen(long from, float scale, long to, int n) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        FloatVector scales = lanes.broadcast(scale);
        for (int i = 0; i < whole; i += step) {
            ByteVector integers = lanes.loadBytes(from + i);
            FloatVector floats = (FloatVector) integers.convertShape(B2F, lanes.species(), 0);
            floats.mul(scales).intoMemorySegment(Addresses.ALL, to + 4L * i, Lanes.ORDER);
        }
        for (int i = whole; i < n; i++) {
            byte integer = Addresses.ALL.get(ValueLayout.JAVA_BYTE, from + i);
            Addresses.setFloat(to + 4L * i, integer * scale);
        }
    }
}
