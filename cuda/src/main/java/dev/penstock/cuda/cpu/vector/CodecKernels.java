package dev.penstock.cuda.cpu.vector;

import static jdk.incubator.vector.VectorOperators.ABS;
import static jdk.incubator.vector.VectorOperators.B2F;
import static jdk.incubator.vector.VectorOperators.F2B;
import static jdk.incubator.vector.VectorOperators.GE;
import static jdk.incubator.vector.VectorOperators.I2F;
import static jdk.incubator.vector.VectorOperators.I2S;
import static jdk.incubator.vector.VectorOperators.LSHL;
import static jdk.incubator.vector.VectorOperators.LSHR;
import static jdk.incubator.vector.VectorOperators.LT;
import static jdk.incubator.vector.VectorOperators.MAX;
import static jdk.incubator.vector.VectorOperators.ZERO_EXTEND_S2I;

import dev.penstock.cuda.device.WireCodec;
import java.lang.foreign.ValueLayout;
import jdk.incubator.vector.ByteVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.ShortVector;
import jdk.incubator.vector.VectorMask;
import jdk.incubator.vector.VectorSpecies;

/**
 * Rows of floats to {@link WireCodec coded} ones and back, but for BF16. Elements behind the last
 * whole vector go one by one.
 */
public final class CodecKernels {
    /** Added and taken away again, it leaves a float below 2^22 rounded to nearest even. */
    private static final float ROUNDER = 0x1.8p23f;

    private static final int EXPONENT_DISTANCE = (127 - 15) << 23;
    private static final int SMALLEST_NORMAL = (127 - 14) << 23;
    private static final int FIRST_INFINITE = 0x477ff000; // 65,520

    private static final long HALF_BYTES = 0x000F_000F_000F_000FL;

    private final Lanes lanes;
    private final VectorSpecies<Long> packed;

    public CodecKernels(Lanes lanes) {
        this.lanes = lanes;
        packed = VectorSpecies.of(long.class, lanes.bytes().vectorShape());
    }

    // ---- half precision -------------------------------------------------------------------------

    /** F32 to IEEE halves. */
    public void toHalves(long from, long to, int n) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            IntVector bits = lanes.load(from + 4L * i).reinterpretAsInts();
            IntVector sign = bits.and(0x8000_0000).lanewise(LSHR, 16);
            IntVector magnitude = bits.and(0x7fff_ffff);
            IntVector tie = magnitude.lanewise(LSHR, 13).and(1);
            IntVector half =
                    magnitude.sub(EXPONENT_DISTANCE).add(0xfff).add(tie).lanewise(LSHR, 13);
            IntVector subnormal = // the sum has the half's bits at its end, rounded
                    magnitude.reinterpretAsFloats().add(0.5f).reinterpretAsInts().sub(0x3f00_0000);
            half = half.blend(subnormal, magnitude.compare(LT, SMALLEST_NORMAL));
            half = half.blend(0x7c00, magnitude.compare(GE, FIRST_INFINITE));
            half = half.blend(0x7e00, magnitude.compare(GE, 0x7f80_0001));
            ShortVector narrow = (ShortVector) half.or(sign).convertShape(I2S, lanes.shorts(), 0);
            narrow.intoMemorySegment(Addresses.ALL, to + 2L * i, Lanes.ORDER);
        }
        for (int i = whole; i < n; i++) {
            short half = Float.floatToFloat16(Addresses.getFloat(from + 4L * i));
            Addresses.ALL.set(ValueLayout.JAVA_SHORT_UNALIGNED, to + 2L * i, half);
        }
    }

    /** IEEE halves to F32; exact. */
    public void fromHalves(long from, long to, int n) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            ShortVector narrow = lanes.loadShorts(from + 2L * i);
            IntVector bits = (IntVector) narrow.convertShape(ZERO_EXTEND_S2I, lanes.integers(), 0);
            IntVector magnitude = bits.and(0x7fff).lanewise(LSHL, 13);
            VectorMask<Integer> special = magnitude.compare(GE, 0x0f80_0000);
            IntVector wide = magnitude.add(EXPONENT_DISTANCE);
            wide = wide.blend(wide.add(EXPONENT_DISTANCE), special);
            IntVector subnormal = // as a multiple of 2^-24: exact below 2^24
                    magnitude
                            .lanewise(LSHR, 13)
                            .convert(I2F, 0)
                            .reinterpretAsFloats()
                            .mul(0x1p-24f)
                            .reinterpretAsInts();
            wide = wide.blend(subnormal, magnitude.compare(LT, 1 << 23));
            wide.or(bits.and(0x8000).lanewise(LSHL, 16))
                    .intoMemorySegment(Addresses.ALL, to + 4L * i, Lanes.ORDER);
        }
        for (int i = whole; i < n; i++) {
            short half = Addresses.ALL.get(ValueLayout.JAVA_SHORT_UNALIGNED, from + 2L * i);
            Addresses.setFloat(to + 4L * i, Float.float16ToFloat(half));
        }
    }

    // ---- integers -------------------------------------------------------------------------------

    /** F32 to integers; the scale goes where it is told to. */
    public void toIntegers(WireCodec codec, long from, long to, int n, long scaleAt) {
        float scale = codec.scale(largest(from, n));
        Addresses.setFloat(scaleAt, scale);
        if (scale == 0) {
            Addresses.clear(to, scaleAt - to);
        } else {
            clearEnd(to, codec.bits() * n / 8, scaleAt);
            if (codec == WireCodec.INT8) {
                toBytes(from, to, n, scale);
            } else {
                toHalfBytes(from, to, n, scale);
            }
        }
    }

    /** Integers times their scale. */
    public void fromIntegers(WireCodec codec, long from, long to, int n, float scale) {
        if (codec == WireCodec.INT8) {
            fromBytes(from, to, n, scale);
        } else {
            fromHalfBytes(from, to, n, scale);
        }
    }

    private float largest(long from, int n) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        FloatVector most = lanes.zero();
        for (int i = 0; i < whole; i += step) {
            most = most.max(lanes.load(from + 4L * i).lanewise(ABS));
        }
        float largest = most.reduceLanes(MAX);
        for (int i = whole; i < n; i++) {
            largest = Math.max(largest, Math.abs(Addresses.getFloat(from + 4L * i)));
        }
        return largest;
    }

    /** Clears what no element fills, and the byte that the last one fills by half. */
    private static void clearEnd(long to, int bytes, long end) {
        for (long at = to + bytes; at < end; at++) {
            Addresses.ALL.set(ValueLayout.JAVA_BYTE, at, (byte) 0);
        }
    }

    private static byte integer(float value, float scale) {
        return (byte) Math.rint(value / scale);
    }

    private ByteVector integers(long from, FloatVector scales) {
        FloatVector rounded = lanes.load(from).div(scales).add(ROUNDER).sub(ROUNDER);
        return (ByteVector) rounded.convertShape(F2B, lanes.bytes(), 0);
    }

    private void toBytes(long from, long to, int n, float scale) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        FloatVector scales = lanes.broadcast(scale);
        for (int i = 0; i < whole; i += step) {
            integers(from + 4L * i, scales).intoMemorySegment(Addresses.ALL, to + i, Lanes.ORDER);
        }
        for (int i = whole; i < n; i++) {
            byte integer = integer(Addresses.getFloat(from + 4L * i), scale);
            Addresses.ALL.set(ValueLayout.JAVA_BYTE, to + i, integer);
        }
    }

    private void fromBytes(long from, long to, int n, float scale) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        FloatVector scales = lanes.broadcast(scale);
        for (int i = 0; i < whole; i += step) {
            FloatVector floats =
                    (FloatVector) lanes.loadBytes(from + i).convertShape(B2F, lanes.species(), 0);
            floats.mul(scales).intoMemorySegment(Addresses.ALL, to + 4L * i, Lanes.ORDER);
        }
        for (int i = whole; i < n; i++) {
            byte integer = Addresses.ALL.get(ValueLayout.JAVA_BYTE, from + i);
            Addresses.setFloat(to + 4L * i, integer * scale);
        }
    }

    private void toHalfBytes(long from, long to, int n, float scale) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        FloatVector scales = lanes.broadcast(scale);
        for (int i = 0; i < whole; i += step) {
            LongVector bytes = integers(from + 4L * i, scales).reinterpretAsLongs();
            for (int eight = 0; eight < packed.length(); eight++) {
                int at = i / 2 + 4 * eight;
                Addresses.ALL.set(
                        ValueLayout.JAVA_INT_UNALIGNED, to + at, halfBytes(bytes.lane(eight)));
            }
        }
        for (int i = whole; i < n; i++) {
            int half = integer(Addresses.getFloat(from + 4L * i), scale) & 0xF;
            long at = to + i / 2;
            int other = i % 2 == 0 ? 0 : Addresses.ALL.get(ValueLayout.JAVA_BYTE, at) & 0xF0;
            int both = i % 2 == 0 ? half << 4 : other | half;
            Addresses.ALL.set(ValueLayout.JAVA_BYTE, at, (byte) both);
        }
    }

    /** Eight bytes to four: of each pair the first is the upper half. */
    private static int halfBytes(long bytes) {
        long pairs = ((bytes & HALF_BYTES) << 4) | (bytes >>> 8 & HALF_BYTES);
        pairs = (pairs | pairs >>> 8) & 0x0000_FFFF_0000_FFFFL;
        return (int) (pairs | pairs >>> 16);
    }

    private void fromHalfBytes(long from, long to, int n, float scale) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        FloatVector scales = lanes.broadcast(scale);
        for (int i = 0; i < whole; i += step) {
            LongVector eights = LongVector.zero(packed);
            for (int eight = 0; eight < packed.length(); eight++) {
                eights = eights.withLane(eight, bytes(Addresses.getInt(from + i / 2 + 4L * eight)));
            }
            FloatVector floats =
                    (FloatVector) eights.reinterpretAsBytes().convertShape(B2F, lanes.species(), 0);
            floats.mul(scales).intoMemorySegment(Addresses.ALL, to + 4L * i, Lanes.ORDER);
        }
        for (int i = whole; i < n; i++) {
            int pair = Addresses.ALL.get(ValueLayout.JAVA_BYTE, from + i / 2);
            int integer = i % 2 == 0 ? pair >> 4 : pair << 28 >> 28;
            Addresses.setFloat(to + 4L * i, integer * scale);
        }
    }

    /** Four bytes to eight, each a half with its sign. */
    private static long bytes(int halves) {
        long pairs = halves & 0xFFFF_FFFFL;
        pairs = (pairs | pairs << 16) & 0x0000_FFFF_0000_FFFFL;
        pairs = (pairs | pairs << 8) & 0x00FF_00FF_00FF_00FFL;
        long bytes = (pairs >>> 4 & HALF_BYTES) | ((pairs & HALF_BYTES) << 8);
        bytes ^= 0x0808_0808_0808_0808L;
        return ((bytes | 0x8080_8080_8080_8080L) - 0x0808_0808_0808_0808L) ^ 0x8080_8080_8080_8080L;
    }
}
