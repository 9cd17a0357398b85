package dev.penstock.cuda.gpu;

import static java.util.Objects.requireNonNull;

import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.WireCodec;
import java.util.EnumMap;
import java.util.Map;

/** Rows of floats to coded words and back; a warp codes a row. */
final class GpuCodecs {
    private static final int THREADS = 128;
    private static final int ROWS_PER_BLOCK = THREADS / 32;

    private final Launch launch;
    private final Map<WireCodec, GpuModule.Function> encode = new EnumMap<>(WireCodec.class);
    private final Map<WireCodec, GpuModule.Function> decode = new EnumMap<>(WireCodec.class);

    GpuCodecs(GpuModule module, Launch launch) {
        this.launch = launch;
        for (WireCodec codec : WireCodec.values()) {
            String elements =
                    switch (codec) {
                        case FP16 -> "Halves";
                        case BF16 -> "BFloats";
                        case INT8 -> "Bytes";
                        case INT4 -> "HalfBytes";
                    };
            encode.put(codec, module.function("encode" + elements));
            decode.put(codec, module.function("decode" + elements));
        }
    }

    void encode(WireCodec codec, Tensor x, Tensor coded) {
        run(encode, codec, x, coded, x);
    }

    void decode(WireCodec codec, Tensor coded, Tensor x) {
        run(decode, codec, coded, x, x);
    }

    private void run(
            Map<WireCodec, GpuModule.Function> kernels,
            WireCodec codec,
            Tensor from,
            Tensor to,
            Tensor x) {
        if (x.elements() > 0) {
            launch.begin().view(from).view(to).integer(x.rows()).integer(x.columns());
            launch.run(
                    requireNonNull(kernels.get(codec)),
                    Math.ceilDiv(x.rows(), ROWS_PER_BLOCK),
                    THREADS);
        }
    }
}
