package dev.penstock.cuda.gpu;

import static java.util.Objects.requireNonNull;

import dev.penstock.cuda.device.RowCodec;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TopK;
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
    private final GpuModule.Function encodeLargest;
    private final GpuModule.Function decodeLargest;

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
        encodeLargest = module.function("encodeLargest");
        decodeLargest = module.function("decodeLargest");
    }

    void encode(RowCodec codec, Tensor x, Tensor coded) {
        switch (codec) {
            case WireCodec elements -> run(requireNonNull(encode.get(elements)), x, coded, x);
            case TopK largest -> run(encodeLargest, largest, x, coded, x);
        }
    }

    void decode(RowCodec codec, Tensor coded, Tensor x) {
        switch (codec) {
            case WireCodec elements -> run(requireNonNull(decode.get(elements)), coded, x, x);
            case TopK largest -> run(decodeLargest, largest, coded, x, x);
        }
    }

    private void run(GpuModule.Function kernel, Tensor from, Tensor to, Tensor x) {
        if (x.elements() > 0) {
            launch.begin().view(from).view(to).integer(x.rows()).integer(x.columns());
            launch.run(kernel, Math.ceilDiv(x.rows(), ROWS_PER_BLOCK), THREADS);
        }
    }

    private void run(GpuModule.Function kernel, TopK codec, Tensor from, Tensor to, Tensor x) {
        if (x.elements() > 0) {
            int columns = x.columns();
            launch.begin().view(from).view(to).integer(x.rows()).integer(columns);
            launch.integer(codec.kept(columns)).integer(codec.words(columns));
            launch.integer(codec.hasBitmap(columns) ? codec.elementWords(columns) : 0);
            launch.run(kernel, Math.ceilDiv(x.rows(), ROWS_PER_BLOCK), THREADS);
        }
    }
}
