package dev.penstock.cuda.kernels;

import dev.penstock.cuda.device.WireCodec;

/** Rows of floats to coded words and back, element by element. */
final class ReferenceCodec {
    private ReferenceCodec() {}

    static int[] encode(WireCodec codec, float[] row) {
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

    static float[] decode(WireCodec codec, int[] words, int columns) {
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
