package dev.penstock.runtime.links;

import dev.penstock.cuda.device.RowCodec;
import dev.penstock.cuda.device.TopK;
import dev.penstock.cuda.device.WireCodec;

/**
 * How fast a core codes tensors: what was measured with rows of 768 floats and AVX-512, in bytes of
 * floats ({@code benchmarks/run kernels}).
 *
 * @param encodedPerSecond bytes of floats that it codes
 * @param decodedPerSecond bytes of floats that it makes of coded ones
 */
record CodingRate(double encodedPerSecond, double decodedPerSecond) {
    static CodingRate of(RowCodec codec) {
        return switch (codec) {
            case WireCodec floatsOrIntegers -> of(floatsOrIntegers);
            case TopK _ -> new CodingRate(1.4e9, 3.2e9);
        };
    }

    private static CodingRate of(WireCodec codec) {
        return switch (codec) {
            case FP16, BF16 -> new CodingRate(17e9, 17e9);
            case INT8 -> new CodingRate(10e9, 22e9);
            case INT4 -> new CodingRate(8e9, 22e9);
        };
    }

    long encodeNanos(long floats) {
        return Math.round(1e9 * floats * Float.BYTES / encodedPerSecond);
    }

    long decodeNanos(long floats) {
        return Math.round(1e9 * floats * Float.BYTES / decodedPerSecond);
    }
}
