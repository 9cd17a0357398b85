package dev.penstock.cuda.cpu.vector;

import static jdk.incubator.vector.VectorOperators.GE;
import static jdk.incubator.vector.VectorOperators.MAX;

import dev.penstock.cuda.device.TopK;
import java.lang.foreign.ValueLayout;
import jdk.incubator.vector.IntVector;

/**
 * The largest elements of rows, and back. The least magnitude that travels is found by halving:
 * each pass over the row, which lies in the nearest cache, counts those above the middle of what is
 * left, until as many as wanted are.
 */
public final class TopKKernels {
    private static final int NO_NUMBER = 0x7f80_0001;

    /** Four powers of two: among larger magnitudes than that below the largest most limits lie. */
    private static final int NEAR = 4 << 23;

    private final Lanes lanes;

    public TopKKernels(Lanes lanes) {
        this.lanes = lanes;
    }

    /** The largest of {@code n} F32 elements to words. */
    public void encode(TopK codec, long from, long to, int n) {
        int kept = codec.kept(n);
        int largest = largest(from, n);
        float scale = TopK.scale(largest);
        int least = 0; // so many as wanted or more are no smaller
        int above = largest + 1; // fewer are no smaller
        int countAbove = 0;
        int middle = largest - NEAR;
        while (above - least > 1) {
            if (middle <= least || middle >= above) {
                middle = (least + above) >>> 1;
            }
            int count = count(from, n, middle);
            if (count < kept) {
                above = middle;
                countAbove = count;
            } else {
                least = middle;
                if (count == kept) {
                    above = middle;
                    countAbove = count;
                }
            }
            middle = 0;
        }
        int words = codec.words(n);
        Addresses.clear(to, 4L * words - 4);
        Addresses.setFloat(to + 4L * words - 4, scale);
        if (codec.hasBitmap(n)) {
            long bitmap = to + 4L * codec.elementWords(n);
            gather(from, to, n, above, kept - countAbove, scale, bitmap, 0);
        } else {
            gather(from, to, n, above, kept - countAbove, scale, 0, to + 2L * kept);
        }
    }

    private int largest(long from, int n) {
        int whole = lanes.whole(n);
        IntVector most = lanes.zero().reinterpretAsInts();
        for (int i = 0; i < whole; i += lanes.count()) {
            most = most.max(lanes.load(from + 4L * i).reinterpretAsInts().and(0x7fff_ffff));
        }
        int largest = Math.min(most.reduceLanes(MAX), NO_NUMBER);
        for (int i = whole; i < n; i++) {
            largest = Math.max(largest, TopK.magnitude(Addresses.getFloat(from + 4L * i)));
        }
        return largest;
    }

    /** How many are no smaller; a limit never exceeds what is no number. */
    private int count(long from, int n, int limit) {
        int whole = lanes.whole(n);
        int count = 0;
        for (int i = 0; i < whole; i += lanes.count()) {
            IntVector bits = lanes.load(from + 4L * i).reinterpretAsInts().and(0x7fff_ffff);
            count += bits.compare(GE, limit).trueCount();
        }
        for (int i = whole; i < n; i++) {
            count += TopK.magnitude(Addresses.getFloat(from + 4L * i)) >= limit ? 1 : 0;
        }
        return count;
    }

    /**
     * Writes what travels, in the order of columns.
     *
     * @param above all these travel
     * @param ties how many of the magnitude just below do
     * @param bitmap where columns are marked, or 0
     * @param positions where their numbers are listed, or 0
     */
    private void gather(
            long from,
            long to,
            int n,
            int above,
            int ties,
            float scale,
            long bitmap,
            long positions) {
        float inverse = 1 / scale;
        int limit = ties > 0 ? above - 1 : above;
        int left = ties;
        int at = 0;
        int whole = lanes.whole(n);
        for (int i = 0; i < n; ) {
            int first = i;
            long found;
            if (i < whole) {
                IntVector bits = lanes.load(from + 4L * i).reinterpretAsInts().and(0x7fff_ffff);
                found = bits.compare(GE, limit).toLong();
                i += lanes.count();
            } else {
                found = TopK.magnitude(Addresses.getFloat(from + 4L * i)) >= limit ? 1 : 0;
                i++;
            }
            for (; found != 0; found &= found - 1) {
                int column = first + Long.numberOfTrailingZeros(found);
                float value = Addresses.getFloat(from + 4L * column);
                if (TopK.magnitude(value) < above && left-- <= 0) {
                    continue;
                }
                setShort(to + 2L * at, Float.floatToFloat16(value * inverse));
                if (bitmap != 0) {
                    long word = bitmap + 4L * (column / Integer.SIZE);
                    Addresses.setInt(word, Addresses.getInt(word) | 1 << column);
                } else {
                    setShort(positions + 2L * at, (short) column);
                }
                at++;
            }
        }
    }

    /** Words to {@code n} F32 elements. */
    public void decode(TopK codec, long from, long to, int n) {
        int kept = codec.kept(n);
        float scale = Addresses.getFloat(from + 4L * codec.words(n) - 4);
        Addresses.clear(to, 4L * n);
        if (codec.hasBitmap(n)) {
            long bitmap = from + 4L * codec.elementWords(n);
            int at = 0;
            for (int i = 0; i < n; i += Integer.SIZE) {
                int marked = Addresses.getInt(bitmap + i / 8);
                for (; marked != 0 && at < kept; marked &= marked - 1) {
                    int column = i + Integer.numberOfTrailingZeros(marked);
                    set(to, n, column, element(from, at++, scale));
                }
            }
        } else {
            long positions = from + 2L * kept;
            for (int at = 0; at < kept; at++) {
                int column = getShort(positions + 2L * at) & 0xffff;
                set(to, n, column, element(from, at, scale));
            }
        }
    }

    /** Words come from other machines, and nothing they say may be written outside the row. */
    private static void set(long to, int n, int column, float value) {
        if (column < n) {
            Addresses.setFloat(to + 4L * column, value);
        }
    }

    private static float element(long from, int at, float scale) {
        return Float.float16ToFloat(getShort(from + 2L * at)) * scale;
    }

    private static short getShort(long at) {
        return Addresses.ALL.get(ValueLayout.JAVA_SHORT_UNALIGNED, at);
    }

    private static void setShort(long at, short value) {
        Addresses.ALL.set(ValueLayout.JAVA_SHORT_UNALIGNED, at, value);
    }
}
