package dev.penstock.cuda.cpu.vector;

import static jdk.incubator.vector.VectorOperators.ABS;
import static jdk.incubator.vector.VectorOperators.ASHR;
import static jdk.incubator.vector.VectorOperators.B2F;
import static jdk.incubator.vector.VectorOperators.B2I;
import static jdk.incubator.vector.VectorOperators.F2B;
import static jdk.incubator.vector.VectorOperators.F2I;
import static jdk.incubator.vector.VectorOperators.GE;
import static jdk.incubator.vector.VectorOperators.I2B;
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
import jdk.incubator.vector.ShortVector;
import jdk.incubator.vector.VectorMask;
import jdk.incubator.vector.VectorShuffle;

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

    private final Lanes lanes;

    /** Every second lane of two vectors, from the first on or from the second. */
    private final VectorShuffle<Float> evens;

    private final VectorShuffle<Float> odds;

    /** The lower lanes of two vectors in turn, and the upper ones. */
    private final VectorShuffle<Float> lowPairs;

    private final VectorShuffle<Float> highPairs;

    public CodecKernels(Lanes lanes) {
        this.lanes = lanes;
        int n = lanes.count();
        evens = VectorShuffle.fromOp(lanes.species(), i -> 2 * i);
        odds = VectorShuffle.fromOp(lanes.species(), i -> 2 * i + 1);
        lowPairs = VectorShuffle.fromOp(lanes.species(), i -> i / 2 + i % 2 * n);
        highPairs = VectorShuffle.fromOp(lanes.species(), i -> (n + i) / 2 + i % 2 * n);
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

    /** Two maxima at a time, as each waits for the one before. */
    private float largest(long from, int n) {
        int step = lanes.count();
        int pairs = n & -(2 * step);
        FloatVector most = lanes.zero();
        FloatVector other = lanes.zero();
        for (int i = 0; i < pairs; i += 2 * step) {
            most = most.max(lanes.load(from + 4L * i).lanewise(ABS));
            other = other.max(lanes.load(from + 4L * (i + step)).lanewise(ABS));
        }
        float largest = most.max(other).reduceLanes(MAX);
        for (int i = pairs; i < n; i++) {
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

    private FloatVector rounded(long from, FloatVector scales) {
        return lanes.load(from).div(scales).add(ROUNDER).sub(ROUNDER);
    }

    private void toBytes(long from, long to, int n, float scale) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        FloatVector scales = lanes.broadcast(scale);
        for (int i = 0; i < whole; i += step) {
            FloatVector rounded = rounded(from + 4L * i, scales);
            ByteVector bytes = (ByteVector) rounded.convertShape(F2B, lanes.bytes(), 0);
            bytes.intoMemorySegment(Addresses.ALL, to + i, Lanes.ORDER);
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

    /** Two vectors at a time: of each pair the first becomes the upper half of a byte. */
    private void toHalfBytes(long from, long to, int n, float scale) {
        int step = lanes.count();
        int whole = n & -(2 * step);
        FloatVector scales = lanes.broadcast(scale);
        for (int i = 0; i < whole; i += 2 * step) {
            FloatVector low = rounded(from + 4L * i, scales);
            FloatVector high = rounded(from + 4L * (i + step), scales);
            IntVector first = (IntVector) low.rearrange(evens, high).convert(F2I, 0);
            IntVector second = (IntVector) low.rearrange(odds, high).convert(F2I, 0);
            IntVector pairs = first.lanewise(LSHL, 4).or(second.and(0xF));
            ByteVector bytes = (ByteVector) pairs.convertShape(I2B, lanes.bytes(), 0);
            bytes.intoMemorySegment(Addresses.ALL, to + i / 2, Lanes.ORDER);
        }
        for (int i = whole; i < n; i++) {
            int half = integer(Addresses.getFloat(from + 4L * i), scale) & 0xF;
            long at = to + i / 2;
            int other = i % 2 == 0 ? 0 : Addresses.ALL.get(ValueLayout.JAVA_BYTE, at) & 0xF0;
            int both = i % 2 == 0 ? half << 4 : other | half;
            Addresses.ALL.set(ValueLayout.JAVA_BYTE, at, (byte) both);
        }
    }

    private void fromHalfBytes(long from, long to, int n, float scale) {
        int step = lanes.count();
        int whole = n & -(2 * step);
        FloatVector scales = lanes.broadcast(scale);
        for (int i = 0; i < whole; i += 2 * step) {
            ByteVector bytes = lanes.loadBytes(from + i / 2);
            IntVector pairs = (IntVector) bytes.convertShape(B2I, lanes.integers(), 0);
            IntVector right = pairs.lanewise(LSHL, 28).lanewise(ASHR, 28);
            FloatVector first = (FloatVector) pairs.lanewise(ASHR, 4).convert(I2F, 0);
            FloatVector second = (FloatVector) right.convert(I2F, 0);
            FloatVector low = first.rearrange(lowPairs, second).mul(scales);
            FloatVector high = first.rearrange(highPairs, second).mul(scales);
            low.intoMemorySegment(Addresses.ALL, to + 4L * i, Lanes.ORDER);
            high.intoMemorySegment(Addresses.ALL, to + 4L * (i + step), Lanes.ORDER);
        }
        for (int i = whole; i < n; i++) {
            int pair = Addresses.ALL.get(ValueLayout.JAVA_BYTE, from + i / 2);
            int integer = i % 2 == 0 ? pair >> 4 : pair << 28 >> 28;
            Addresses.setFloat(to + 4L * i, integer * scale);
        }
    }
}
