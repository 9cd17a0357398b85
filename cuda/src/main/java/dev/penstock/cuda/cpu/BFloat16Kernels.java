package dev.penstock.cuda.cpu;

import static jdk.incubator.vector.VectorOperators.I2S;
import static jdk.incubator.vector.VectorOperators.LSHL;
import static jdk.incubator.vector.VectorOperators.LSHR;
import static jdk.incubator.vector.VectorOperators.NE;
import static jdk.incubator.vector.VectorOperators.ZERO_EXTEND_S2I;

import dev.penstock.cuda.cpu.vector.Addresses;
import dev.penstock.cuda.cpu.vector.Lanes;
import dev.penstock.cuda.kernels.BFloat16;
import java.lang.foreign.ValueLayout;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.ShortVector;

/** Conversions of runs of n elements between F32 and BF16, rounding to nearest even. */
final class BFloat16Kernels {
    private static final int QUIET_NAN = 0x7fc00000;

    private final Lanes lanes;

    BFloat16Kernels(Lanes lanes) {
        this.lanes = lanes;
    }

    /** F32 to BF16. */
    void narrow(long from, long to, int n) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            IntVector bits = rounded(lanes.load(from + 4L * i)).lanewise(LSHR, 16);
            ShortVector narrow = (ShortVector) bits.convertShape(I2S, lanes.shorts(), 0);
            narrow.intoMemorySegment(Addresses.ALL, to + 2L * i, Lanes.ORDER);
        }
        for (int i = whole; i < n; i++) {
            short bits = BFloat16.fromFloat(Addresses.getFloat(from + 4L * i));
            Addresses.ALL.set(ValueLayout.JAVA_SHORT_UNALIGNED, to + 2L * i, bits);
        }
    }

    /** BF16 to F32; exact. */
    void widen(long from, long to, int n) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            ShortVector narrow = lanes.loadShorts(from + 2L * i);
            IntVector bits = (IntVector) narrow.convertShape(ZERO_EXTEND_S2I, lanes.integers(), 0);
            bits.lanewise(LSHL, 16)
                    .reinterpretAsFloats()
                    .intoMemorySegment(Addresses.ALL, to + 4L * i, Lanes.ORDER);
        }
        for (int i = whole; i < n; i++) {
            short bits = Addresses.ALL.get(ValueLayout.JAVA_SHORT_UNALIGNED, from + 2L * i);
            Addresses.setFloat(to + 4L * i, BFloat16.toFloat(bits));
        }
    }

    /** F32 to the nearest F32 that BF16 can hold. */
    void round(long from, long to, int n) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            IntVector bits = rounded(lanes.load(from + 4L * i)).and(0xffff0000);
            bits.reinterpretAsFloats().intoMemorySegment(Addresses.ALL, to + 4L * i, Lanes.ORDER);
        }
        for (int i = whole; i < n; i++) {
            Addresses.setFloat(to + 4L * i, BFloat16.round(Addresses.getFloat(from + 4L * i)));
        }
    }

    /** Bits whose upper half is the rounded value; NaN becomes the quiet one. */
    private static IntVector rounded(FloatVector x) {
        IntVector bits = x.reinterpretAsInts();
        IntVector tie = bits.lanewise(LSHR, 16).and(1);
        IntVector sum = bits.add(tie).add(0x7fff);
        return sum.blend(QUIET_NAN, x.compare(NE, x).cast(bits.species()));
    }
}
