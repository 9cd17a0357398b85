package dev.penstock.cuda.kernels;

import dev.penstock.cuda.device.RowCodec;
import dev.penstock.cuda.device.TopK;
import dev.penstock.cuda.device.WireCodec;
import java.util.Arrays;
import java.util.Comparator;
import java.util.stream.IntStream;

/** Rows of floats to coded words and back, element by element. */
final class ReferenceCodec {
    private ReferenceCodec() {}

    static int[] encode(RowCodec codec, float[] row) {
        return switch (codec) {
            case WireCodec elements -> encode(elements, row);
            case TopK largest -> encode(largest, row);
        };
    }

    static float[] decode(RowCodec codec, int[] words, int columns) {
        return switch (codec) {
            case WireCodec elements -> decode(elements, words, columns);
            case TopK largest -> decode(largest, words, columns);
        };
    }

    // ---- the largest elements -------------------------------------------------------------------

    private static int[] encode(TopK codec, float[] row) {
        int[] words = new int[codec.words(row.length)];
        int[] columns =
                IntStream.range(0, row.length)
                        .boxed()
                        .sorted(Comparator.comparing(j -> -TopK.magnitude(row[j])))
                        .limit(codec.kept(row.length))
                        .mapToInt(j -> j)
                        .toArray();
        float scale = TopK.scale(columns.length == 0 ? 0 : TopK.magnitude(row[columns[0]]));
        Arrays.sort(columns);
        for (int i = 0; i < columns.length; i++) {
            setHalf(words, i, Float.floatToFloat16(row[columns[i]] / scale));
            if (codec.hasBitmap(row.length)) {
                words[codec.elementWords(row.length) + columns[i] / 32] |= 1 << (columns[i] % 32);
            } else {
                setHalf(words, columns.length + i, columns[i]);
            }
        }
        words[words.length - 1] = Float.floatToRawIntBits(scale);
        return words;
    }

    private static float[] decode(TopK codec, int[] words, int columns) {
        float[] row = new float[columns];
        int kept = codec.kept(columns);
        float scale = Float.intBitsToFloat(words[words.length - 1]);
        int i = 0;
        for (int j = 0; j < columns && i < kept; j++) {
            boolean travelled =
                    codec.hasBitmap(columns)
                            ? ((words[codec.elementWords(columns) + j / 32] >>> (j % 32)) & 1) != 0
                            : half(words, kept + i) == j;
            if (travelled) {
                row[j] = Float.float16ToFloat((short) half(words, i)) * scale;
                i++;
            }
        }
        return row;
    }

    private static void setHalf(int[] words, int i, int half) {
        words[i / 2] |= (half & 0xffff) << (i % 2 * 16);
    }

    private static int half(int[] words, int i) {
        return (words[i / 2] >>> (i % 2 * 16)) & 0xffff;
    }

    // ---- all elements ---------------------------------------------------------------------------

    private static int[] encode(WireCodec codec, float[] row) {
        int[] words = new int[codec.words(row.length)];
        float scale = codec.isScaled() ? codec.scale(largest(row)) : 1;
        for (int i = 0; i < row.length; i++) {
            int bits =
                    switch (codec) {
                        case FP16 -> Float.floatToFloat16(row[i]);
                        case BF16 -> BFloat16.fromFloat(row[i]);
                        case INT8, INT4 -> integer(codec, row[i], scale);
                    };
            int mask = (1 << codec.bits()) - 1;
            words[word(codec, i)] |= (bits & mask) << shift(codec, i);
        }
        if (codec.isScaled()) {
            words[words.length - 1] = Float.floatToRawIntBits(scale);
        }
        return words;
    }

    private static float[] decode(WireCodec codec, int[] words, int columns) {
        float[] row = new float[columns];
        float scale = Float.intBitsToFloat(words[words.length - 1]);
        for (int i = 0; i < columns; i++) {
            int unused = Integer.SIZE - codec.bits();
            int bits = words[word(codec, i)] >>> shift(codec, i) << unused >> unused;
            row[i] =
                    switch (codec) {
                        case FP16 -> Float.float16ToFloat((short) bits);
                        case BF16 -> BFloat16.toFloat((short) bits);
                        case INT8, INT4 -> bits * scale;
                    };
        }
        return row;
    }

    private static float largest(float[] row) {
        float largest = 0;
        for (float value : row) {
            largest = Math.max(largest, Math.abs(value));
        }
        return largest;
    }

    private static int integer(WireCodec codec, float value, float scale) {
        int rounded = scale == 0 ? 0 : (int) Math.rint(value / scale);
        return Math.clamp(rounded, -codec.largest(), codec.largest());
    }

    private static int word(WireCodec codec, int element) {
        return element * codec.bits() / Integer.SIZE;
    }

    /** From the lowest bit on; of two halves of a byte the upper one comes first. */
    private static int shift(WireCodec codec, int element) {
        int inOrder = codec == WireCodec.INT4 ? element ^ 1 : element;
        return inOrder * codec.bits() % Integer.SIZE;
    }
}
