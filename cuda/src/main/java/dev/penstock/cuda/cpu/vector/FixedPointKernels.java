package dev.penstock.cuda.cpu.vector;

import static jdk.incubator.vector.VectorOperators.D2F;
import static jdk.incubator.vector.VectorOperators.F2D;
import static jdk.incubator.vector.VectorOperators.MAX;
import static jdk.incubator.vector.VectorOperators.OR;

import dev.penstock.cuda.device.FixedPoint;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.LongVector;

/**
 * Exact sums of runs of n gradients, see {@link FixedPoint}.
 *
 * <p>AVX2 has no instruction between doubles and longs. A double of magnitude up to 2^51 becomes an
 * integer when 1.5 * 2^52 is added to it, rounded to nearest even, and its lower bits then are the
 * integer's; and back again. Runs with larger elements, which nobody has, go element by element.
 */
public final class FixedPointKernels {
    private static final double ROUNDS = 0x1.8p52;
    private static final long BITS_OF_ROUNDS = Double.doubleToRawLongBits(ROUNDS);

    /** The largest float whose integer is at most 2^51. */
    private static final float LARGEST = 0x1p7f;

    /** Half of the integers that vectors convert. */
    private static final long HALF_RANGE = 1L << 51;

    private static final long OUT_OF_RANGE = -2 * HALF_RANGE;
    private static final double SMALLEST = 1 / FixedPoint.ONE;

    private final Lanes lanes;

    public FixedPointKernels(Lanes lanes) {
        this.lanes = lanes;
    }

    /**
     * Adds the integers of n floats to n longs, or stores them there, and clears the floats.
     *
     * @return whether all are within the limit
     */
    public boolean fold(long g, long sum, int n, float limit, boolean accumulate) {
        int whole = largestBits(g, n) <= bits(Math.min(limit, LARGEST)) ? lanes.whole(n) : 0;
        if (accumulate) {
            addWhole(g, sum, whole);
        } else {
            storeWhole(g, sum, whole);
        }
        return foldRest(g + 4L * whole, sum + 8L * whole, n - whole, limit, accumulate);
    }

    private static int bits(float magnitude) {
        return Float.floatToRawIntBits(magnitude);
    }

    /** The largest magnitude as bits, of which those of NaN are larger than any number's. */
    private int largestBits(long g, int n) {
        IntVector largest = IntVector.zero(lanes.integers());
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            IntVector bits = lanes.load(g + 4L * i).viewAsIntegralLanes();
            largest = largest.max(bits.and(Integer.MAX_VALUE));
        }
        int most = largest.reduceLanes(MAX);
        for (int i = whole; i < n; i++) {
            most = Math.max(most, Addresses.getInt(g + 4L * i) & Integer.MAX_VALUE);
        }
        return most;
    }

    private void addWhole(long g, long sum, int whole) {
        FloatVector zero = lanes.zero();
        int step = lanes.count();
        for (int i = 0; i < whole; i += step) {
            FloatVector v = lanes.load(g + 4L * i);
            long low = sum + 8L * i;
            long high = low + 4L * step;
            LongVector first = integers(v, 0).add(lanes.loadLongs(low));
            LongVector second = integers(v, 1).add(lanes.loadLongs(high));
            first.intoMemorySegment(Addresses.ALL, low, Lanes.ORDER);
            second.intoMemorySegment(Addresses.ALL, high, Lanes.ORDER);
            zero.intoMemorySegment(Addresses.ALL, g + 4L * i, Lanes.ORDER);
        }
    }

    private void storeWhole(long g, long sum, int whole) {
        FloatVector zero = lanes.zero();
        int step = lanes.count();
        for (int i = 0; i < whole; i += step) {
            FloatVector v = lanes.load(g + 4L * i);
            long low = sum + 8L * i;
            integers(v, 0).intoMemorySegment(Addresses.ALL, low, Lanes.ORDER);
            integers(v, 1).intoMemorySegment(Addresses.ALL, low + 4L * step, Lanes.ORDER);
            zero.intoMemorySegment(Addresses.ALL, g + 4L * i, Lanes.ORDER);
        }
    }

    /** Of the first or second half of a vector. */
    private LongVector integers(FloatVector v, int half) {
        DoubleVector wide = (DoubleVector) v.convertShape(F2D, lanes.doubles(), half);
        return wide.mul(FixedPoint.ONE).add(ROUNDS).viewAsIntegralLanes().sub(BITS_OF_ROUNDS);
    }

    private static boolean foldRest(long g, long sum, int n, float limit, boolean accumulate) {
        boolean within = true;
        for (int i = 0; i < n; i++) {
            float number = Addresses.getFloat(g + 4L * i);
            long before = accumulate ? Addresses.getLong(sum + 8L * i) : 0;
            within &= Math.abs(number) <= limit;
            Addresses.setLong(sum + 8L * i, before + FixedPoint.of(number));
            Addresses.setFloat(g + 4L * i, 0);
        }
        return within;
    }

    /** {@code y += x} of longs. */
    public void add(long x, long y, int n) {
        int step = lanes.count() / 2;
        int whole = n & -step;
        for (int i = 0; i < whole; i += step) {
            long at = 8L * i;
            lanes.loadLongs(y + at)
                    .add(lanes.loadLongs(x + at))
                    .intoMemorySegment(Addresses.ALL, y + at, Lanes.ORDER);
        }
        for (int i = whole; i < n; i++) {
            long at = 8L * i;
            Addresses.setLong(y + at, Addresses.getLong(y + at) + Addresses.getLong(x + at));
        }
    }

    /** The floats nearest to n integers. */
    public void unfold(long sum, long g, int n) {
        int whole = convertible(sum, n) ? n & -(lanes.count() / 2) : 0;
        unfoldWhole(sum, g, whole);
        for (int i = whole; i < n; i++) {
            Addresses.setFloat(g + 4L * i, FixedPoint.value(Addresses.getLong(sum + 8L * i)));
        }
    }

    private boolean convertible(long sum, int n) {
        LongVector seen = LongVector.zero(lanes.longs());
        int step = lanes.count() / 2;
        int whole = n & -step;
        for (int i = 0; i < whole; i += step) {
            seen = seen.or(lanes.loadLongs(sum + 8L * i).add(HALF_RANGE));
        }
        return (seen.reduceLanes(OR) & OUT_OF_RANGE) == 0;
    }

    private void unfoldWhole(long sum, long g, int whole) {
        int step = lanes.count() / 2;
        for (int i = 0; i < whole; i += step) {
            LongVector bits = lanes.loadLongs(sum + 8L * i).add(BITS_OF_ROUNDS);
            DoubleVector number = bits.reinterpretAsDoubles().sub(ROUNDS).mul(SMALLEST);
            FloatVector rounded = (FloatVector) number.convertShape(D2F, lanes.half(), 0);
            rounded.intoMemorySegment(Addresses.ALL, g + 4L * i, Lanes.ORDER);
        }
    }
}
