package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.memory.Scratch;
import java.util.Arrays;
import java.util.List;

/** The kernels of {@code attention.cu}. */
final class GpuAttention {
    private static final int TILE = 32;
    private static final int THREADS = 256;
    private static final int[] WIDTHS = {32, 64, 128};

    private final Launch launch;
    private final Scratch scratch;
    private final GpuModule.Function delta;
    private final List<OfWidth> widths;

    /** The kernels for heads of up to this many columns. */
    private record OfWidth(
            int width,
            GpuModule.Function forward,
            GpuModule.Function queryGradient,
            GpuModule.Function keyValueGradient) {

        static OfWidth of(GpuModule module, int width) {
            return new OfWidth(
                    width,
                    module.function("attention" + width, forwardBytes(width)),
                    module.function("queryGradient" + width, backwardBytes(width)),
                    module.function("keyValueGradient" + width, backwardBytes(width)));
        }

        /** Queries, values, and keys with a column between rows. */
        static int forwardBytes(int width) {
            return Float.BYTES * TILE * (3 * width + 1);
        }

        /** Two tiles, and two with a column between rows. */
        static int backwardBytes(int width) {
            return Float.BYTES * TILE * (4 * width + 2);
        }
    }

    /**
     * Which queries see which keys, as the kernels take it: query i the keys below {@code
     * seenByFirst + i}.
     *
     * @param goesOn whether y and dq start from what is there
     */
    record Span(
            int sequences,
            int queries,
            int keys,
            int seenByFirst,
            int context,
            int headWidth,
            int heads,
            boolean goesOn) {

        static Span ofSlice(TokenBlocks blocks, int context, int headWidth, int heads) {
            int end = blocks.firstToken() + blocks.tokens();
            return new Span(
                    blocks.sequences(),
                    blocks.tokens(),
                    end,
                    blocks.firstToken() + 1,
                    context,
                    headWidth,
                    heads,
                    false);
        }

        static Span ofEarlier(int queries, int keys, int headWidth, int heads) {
            return new Span(1, queries, keys, keys, 0, headWidth, heads, true);
        }
    }

    /**
     * @param scratch for a number per row and head
     */
    GpuAttention(GpuModule module, Launch launch, Scratch scratch) {
        this.launch = launch;
        this.scratch = scratch;
        delta = module.function("attentionDelta");
        widths = Arrays.stream(WIDTHS).mapToObj(w -> OfWidth.of(module, w)).toList();
    }

    void forward(
            Tensor qkv, Tensor y, Tensor logSumExp, int heads, int context, TokenBlocks blocks) {
        Span span = Span.ofSlice(blocks, context, y.columns() / heads, heads);
        forward(span, queries(qkv, blocks), keys(qkv), values(qkv), y, logSumExp);
    }

    void forwardToEarlier(Tensor q, Tensor keyValues, Tensor y, Tensor logSumExp, int heads) {
        Span span = Span.ofEarlier(q.rows(), keyValues.rows(), q.columns() / heads, heads);
        forward(span, q, half(keyValues, 0), half(keyValues, 1), y, logSumExp);
    }

    private void forward(Span span, Tensor q, Tensor k, Tensor v, Tensor y, Tensor logSumExp) {
        OfWidth kernels = ofWidth(span.headWidth());
        launch.begin().view(q).view(k).view(v).view(y).view(logSumExp).span(span, span.goesOn());
        overTiles(kernels.forward(), span.queries(), span, OfWidth.forwardBytes(kernels.width()));
    }

    void backward(
            Tensor qkv,
            Tensor y,
            Tensor logSumExp,
            Tensor dy,
            Tensor dQkv,
            int heads,
            int context,
            TokenBlocks blocks) {
        Span span = Span.ofSlice(blocks, context, y.columns() / heads, heads);
        Tensor q = queries(qkv, blocks);
        Tensor dq = queries(dQkv, blocks);
        long deltas = deltas(y, dy, heads);
        backward(q, keys(qkv), values(qkv), logSumExp, deltas, dy);
        keyValueGradient(span, keys(dQkv), values(dQkv));
        backward(q, keys(qkv), values(qkv), logSumExp, deltas, dy);
        queryGradient(span, dq);
    }

    void backwardToEarlier(
            Tensor q,
            Tensor keyValues,
            Tensor y,
            Tensor logSumExp,
            Tensor dy,
            Tensor dq,
            Tensor dKeyValues,
            int heads) {
        Span span = Span.ofEarlier(q.rows(), keyValues.rows(), q.columns() / heads, heads);
        long deltas = deltas(y, dy, heads);
        backward(q, half(keyValues, 0), half(keyValues, 1), logSumExp, deltas, dy);
        keyValueGradient(span, half(dKeyValues, 0), half(dKeyValues, 1));
        backward(q, half(keyValues, 0), half(keyValues, 1), logSumExp, deltas, dy);
        queryGradient(span, dq);
    }

    static long deltaBytes(Tensor y, int heads) {
        return (long) Float.BYTES * y.rows() * heads;
    }

    /** {@code dy . y} of each row and head. */
    private long deltas(Tensor y, Tensor dy, int heads) {
        int sums = y.rows() * heads;
        long deltas = scratch.reserve(deltaBytes(y, heads));
        launch.begin().view(dy).view(y).wide(deltas);
        launch.integer(y.rows()).integer(heads).integer(y.columns() / heads);
        launch.run(delta, Math.ceilDiv(sums, THREADS / 32), THREADS);
        return deltas;
    }

    /** The parameters that both kernels of the backward begin with. */
    private void backward(Tensor q, Tensor k, Tensor v, Tensor logSumExp, long deltas, Tensor dy) {
        launch.begin().view(q).view(k).view(v).known(dy, logSumExp, deltas);
    }

    private void keyValueGradient(Span span, Tensor dk, Tensor dv) {
        OfWidth kernels = ofWidth(span.headWidth());
        launch.view(dk).view(dv).span(span, true);
        int bytes = OfWidth.backwardBytes(kernels.width());
        overTiles(kernels.keyValueGradient(), span.keys(), span, bytes);
    }

    private void queryGradient(Span span, Tensor dq) {
        OfWidth kernels = ofWidth(span.headWidth());
        launch.view(dq).span(span, span.goesOn());
        int bytes = OfWidth.backwardBytes(kernels.width());
        overTiles(kernels.queryGradient(), span.queries(), span, bytes);
    }

    private void overTiles(GpuModule.Function kernel, int rows, Span span, int sharedBytes) {
        int tiles = Math.ceilDiv(rows, TILE);
        if (tiles == 0) {
            return;
        }
        launch.run(kernel, tiles, span.heads(), span.sequences(), THREADS, sharedBytes);
    }

    /** From the slice's first row on. */
    private static Tensor queries(Tensor qkv, TokenBlocks blocks) {
        return qkv.rows(blocks.firstToken(), qkv.rows() - blocks.firstToken());
    }

    private static Tensor keys(Tensor qkv) {
        return qkv.columns(qkv.columns() / 3, qkv.columns() / 3);
    }

    private static Tensor values(Tensor qkv) {
        return qkv.columns(2 * (qkv.columns() / 3), qkv.columns() / 3);
    }

    private static Tensor half(Tensor keyValues, int which) {
        int width = keyValues.columns() / 2;
        return keyValues.columns(which * width, width);
    }

    private OfWidth ofWidth(int headWidth) {
        for (OfWidth each : widths) {
            if (headWidth <= each.width()) {
                return each;
            }
        }
        throw new DeviceException(
                "attention on a GPU: expected heads of at most %d columns, got %d; use more heads, or device.kind = cpu"
                        .formatted(WIDTHS[WIDTHS.length - 1], headWidth));
    }
}
