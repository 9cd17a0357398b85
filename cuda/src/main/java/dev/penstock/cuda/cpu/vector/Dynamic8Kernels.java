package dev.penstock.cuda.cpu.vector;

import dev.penstock.cuda.kernels.Dynamic8;
import java.lang.foreign.ValueLayout;

/** Conversions of blocks between F32 and the codes of {@link Dynamic8}. */
public final class Dynamic8Kernels {
    private Dynamic8Kernels() {}

    /**
     * A block of codes to F32.
     *
     * @param scale of the block
     */
    public static void widen(Dynamic8 codes, long from, float scale, long to, int n) {
        for (int i = 0; i < n; i++) {
            byte code = Addresses.ALL.get(ValueLayout.JAVA_BYTE, from + i);
            Addresses.setFloat(to + 4L * i, codes.value(code) * scale);
        }
    }

    /** F32 to a block of codes; returns its scale. */
    public static float narrow(Dynamic8 codes, long from, long to, int n) {
        float least = 0;
        float largest = 0;
        for (int i = 0; i < n; i++) {
            float value = Addresses.getFloat(from + 4L * i);
            least = Math.min(least, value);
            largest = Math.max(largest, value);
        }
        float scale = Dynamic8.scale(least, largest);
        if (scale == 0) {
            Addresses.clear(to, n);
            return scale;
        }
        for (int i = 0; i < n; i++) {
            byte code = codes.code(Addresses.getFloat(from + 4L * i) / scale);
            Addresses.ALL.set(ValueLayout.JAVA_BYTE, to + i, code);
        }
        return scale;
    }
}
