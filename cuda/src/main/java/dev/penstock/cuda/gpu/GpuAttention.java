package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.EarlierKeys;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.memory.Scratch;
import java.util.List;

/** The kernels of {@code attention.cu} and {@code attention_halves.cu}. */
final class GpuAttention {
    private static final int DELTA_THREADS = 256;

    /** Where gradients that are rounded begin. */
    private static final int ALIGNMENT = 64;

    private final Launch launch;
    private final Scratch scratch;
    private final GpuModule.Function delta;
    private final GpuModule.Function deltaOfHalves;
    private final List<OfWidth> floats;
    private final List<OfWidth> halves;
    private final List<OfWidth> keptHalves;

    /** Same with gradients in bf16. */
    private final List<OfWidth> roundedHalves;

    /**
     * A kernel whose blocks each make the results of a tile.
     *
     * @param rows of a tile: queries or keys
     */
    private record Tiles(GpuModule.Function function, int rows, int threads, int sharedBytes) {
        static Tiles of(GpuModule module, String name, int rows, int threads, int sharedBytes) {
            return new Tiles(module.function(name, sharedBytes), rows, threads, sharedBytes);
        }
    }

    /** What the names of kernels of gradients begin with, by the type of these. */
    private enum Gradients {
        FLOATS("queryGradientOf", "keyValueGradientOf"),
        ROUNDED("roundedQueryGradientOf", "roundedKeyValueGradientOf");

        private final String ofQueries;
        private final String ofKeys;

        Gradients(String ofQueries, String ofKeys) {
            this.ofQueries = ofQueries;
            this.ofKeys = ofKeys;
        }
    }

    /**
     * The kernels for heads of up to this many columns.
     *
     * @param inSixteens whether queries of a head come in groups of 16, the last with fewer
     */
    private record OfWidth(
            int width,
            boolean inSixteens,
            Tiles forward,
            Tiles queryGradient,
            Tiles keyValueGradient) {
        private static final int ROWS = 32;
        private static final int THREADS = 256;

        /** Tiles of {@code attention_halves.cu} that pass by, and a warp's own rows. */
        private static final int PASSING = 64;

        private static final int WARP_ROWS = 16;

        /** The queries of all heads that share keys. */
        int rowsOfQueries(Span span) {
            int ofHead =
                    inSixteens
                            ? Math.ceilDiv(span.queries(), WARP_ROWS) * WARP_ROWS
                            : span.queries();
            return ofHead * span.shape().group();
        }

        /** Those of {@code attention.cu}. */
        static OfWidth ofFloats(GpuModule module, int width) {
            // queries, values, and keys with a column between rows
            int forward = Float.BYTES * ROWS * (3 * width + 1);
            // two tiles, and two with a column between rows
            int backward = Float.BYTES * ROWS * (4 * width + 2);
            return new OfWidth(
                    width,
                    false,
                    Tiles.of(module, "attention" + width, ROWS, THREADS, forward),
                    Tiles.of(module, "queryGradient" + width, ROWS, THREADS, backward),
                    Tiles.of(module, "keyValueGradient" + width, ROWS, THREADS, backward));
        }

        /**
         * Those of {@code attention_halves.cu}, by this many warps.
         *
         * @param gradients what the names of gradients begin with
         * @param name for which type of queries, keys and values
         * @param ahead whether the next two tiles are loaded while these pass by
         * @param ofQueries whose tiles are queries
         * @param ofKeys whose tiles are keys
         */
        static OfWidth ofHalves(
                GpuModule module,
                Gradients gradients,
                String name,
                boolean ahead,
                int width,
                int ofQueries,
                int ofKeys) {
            int rowBytes = DType.BF16.bytes() * (width + 8);
            int queries = WARP_ROWS * ofQueries;
            int keys = WARP_ROWS * ofKeys;
            int passing = (ahead ? 4 : 2) * PASSING;
            // own rows and tiles that pass by
            int forward = rowBytes * (queries + passing);
            // own rows are read once, from where tiles pass by later
            int queryGradient = rowBytes * passing;
            // so are keys and values if tiles come ahead; and two numbers for each query
            int keyValueGradient =
                    rowBytes * (passing + (ahead ? 0 : 2 * keys)) + passing * Float.BYTES;
            return new OfWidth(
                    width,
                    true,
                    Tiles.of(
                            module, "attentionOf" + name + width, queries, 32 * ofQueries, forward),
                    Tiles.of(
                            module,
                            gradients.ofQueries + name + width,
                            queries,
                            32 * ofQueries,
                            queryGradient),
                    Tiles.of(
                            module,
                            gradients.ofKeys + name + width,
                            keys,
                            32 * ofKeys,
                            keyValueGradient));
        }
    }

    /**
     * Which queries see which keys, as the kernels take it: query i the keys from {@code
     * firstSeenByFirst + i}, which may be negative, up to and without {@code seenByFirst + i}.
     *
     * @param goesOn whether y and dq start from what is there
     */
    record Span(
            int sequences,
            int queries,
            int keys,
            int seenByFirst,
            int firstSeenByFirst,
            int context,
            AttentionShape shape,
            boolean goesOn) {

        static Span ofSlice(TokenBlocks blocks, int context, AttentionShape shape) {
            if (shape.bidirectional()) {
                throw new DeviceException(
                        "attention: expected queries that see no keys behind them, as GPUs do not attend to both sides yet");
            }
            int end = blocks.firstToken() + blocks.tokens();
            return new Span(
                    blocks.sequences(),
                    blocks.tokens(),
                    end,
                    blocks.firstToken() + 1,
                    blocks.firstToken() + 1 - shape.window(),
                    context,
                    shape,
                    false);
        }

        static Span ofEarlier(int queries, int keys, EarlierKeys where) {
            AttentionShape shape = where.shape();
            int firstSeen = where.distance() + 1 - shape.window();
            return new Span(1, queries, keys, keys, firstSeen, 0, shape, true);
        }
    }

    /**
     * @param scratch for {@link #backwardBytes}
     */
    GpuAttention(GpuModule module, Launch launch, Scratch scratch) {
        this.launch = launch;
        this.scratch = scratch;
        delta = module.function("attentionDelta");
        deltaOfHalves = module.function("attentionDeltaOfHalves");
        floats =
                List.of(
                        OfWidth.ofFloats(module, 32),
                        OfWidth.ofFloats(module, 64),
                        OfWidth.ofFloats(module, AttentionShape.MOST_COLUMNS_ON_GPU));
        halves = ofHalves(module, Gradients.FLOATS, "Halves", false);
        keptHalves = ofHalves(module, Gradients.FLOATS, "KeptHalves", true);
        roundedHalves = ofHalves(module, Gradients.ROUNDED, "KeptHalves", true);
    }

    /**
     * @param ahead whether tiles of up to 64 columns are loaded ahead; wider ones do not fit
     */
    private static List<OfWidth> ofHalves(
            GpuModule module, Gradients gradients, String name, boolean ahead) {
        int widest = AttentionShape.MOST_COLUMNS_ON_GPU;
        return List.of(
                OfWidth.ofHalves(module, gradients, name, ahead, 64, 8, 4),
                OfWidth.ofHalves(module, gradients, name, false, widest, 4, 4));
    }

    void forward(
            DType multiply,
            Tensor qkv,
            Tensor y,
            Tensor logSumExp,
            AttentionShape shape,
            int context,
            TokenBlocks blocks) {
        Span span = Span.ofSlice(blocks, context, shape);
        forward(
                multiply,
                span,
                queries(qkv, blocks),
                keys(qkv, shape),
                values(qkv, shape),
                y,
                logSumExp);
    }

    void forwardToEarlier(
            DType multiply,
            Tensor q,
            Tensor keyValues,
            Tensor y,
            Tensor logSumExp,
            EarlierKeys keys) {
        Span span = Span.ofEarlier(q.rows(), keyValues.rows(), keys);
        forward(multiply, span, q, half(keyValues, 0), half(keyValues, 1), y, logSumExp);
    }

    private void forward(
            DType multiply, Span span, Tensor q, Tensor k, Tensor v, Tensor y, Tensor logSumExp) {
        OfWidth kernels = ofWidth(multiply, q.type(), span);
        launch.begin().view(q).view(k).view(v).view(y).view(logSumExp).span(span, span.goesOn());
        overTiles(kernels.forward(), kernels.rowsOfQueries(span), span);
    }

    void backward(
            DType multiply,
            Tensor qkv,
            Tensor y,
            Tensor logSumExp,
            Tensor dy,
            Tensor dQkv,
            AttentionShape shape,
            int context,
            TokenBlocks blocks) {
        Span span = Span.ofSlice(blocks, context, shape);
        backward(multiply, span, true, qkv, y, logSumExp, dy, dQkv, blocks);
    }

    void wholeBackward(
            DType multiply,
            Tensor qkv,
            Tensor y,
            Tensor logSumExp,
            Tensor dy,
            Tensor dQkv,
            AttentionShape shape,
            int context,
            TokenBlocks blocks) {
        Span span = Span.ofSlice(blocks, context, shape);
        backward(multiply, span, false, qkv, y, logSumExp, dy, dQkv, blocks);
    }

    private void backward(
            DType multiply,
            Span span,
            boolean accumulates,
            Tensor qkv,
            Tensor y,
            Tensor logSumExp,
            Tensor dy,
            Tensor dQkv,
            TokenBlocks blocks) {
        AttentionShape shape = span.shape();
        Tensor q = queries(qkv, blocks);
        Tensor dq = queries(dQkv, blocks);
        Known known = known(multiply, qkv.type(), y, dy, shape.heads());
        backward(q, keys(qkv, shape), values(qkv, shape), logSumExp, known);
        boolean rounds = dQkv.type() == DType.BF16;
        OfWidth kernels =
                rounds ? ofWidth(roundedHalves, span) : ofWidth(multiply, qkv.type(), span);
        keyValueGradient(kernels, span, accumulates, keys(dQkv, shape), values(dQkv, shape));
        backward(q, keys(qkv, shape), values(qkv, shape), logSumExp, known);
        queryGradient(kernels, span, dq);
    }

    void backwardToEarlier(
            DType multiply,
            Tensor q,
            Tensor keyValues,
            Tensor y,
            Tensor logSumExp,
            Tensor dy,
            Tensor dq,
            Tensor dKeyValues,
            EarlierKeys keys) {
        Span span = Span.ofEarlier(q.rows(), keyValues.rows(), keys);
        Known known = known(multiply, q.type(), y, dy, keys.shape().heads());
        backward(q, half(keyValues, 0), half(keyValues, 1), logSumExp, known);
        OfWidth kernels = ofWidth(multiply, q.type(), span);
        keyValueGradient(kernels, span, true, half(dKeyValues, 0), half(dKeyValues, 1));
        backward(q, half(keyValues, 0), half(keyValues, 1), logSumExp, known);
        queryGradient(kernels, span, dq);
    }

    /**
     * What the backward keeps for itself: a number for each row and head, and {@code dy} as its
     * products read it where they read queries so.
     *
     * @param kept type of queries, keys and values
     */
    static long backwardBytes(DType multiply, DType kept, Tensor y, Tensor dy, int heads) {
        long deltas = deltaBytes(y, heads);
        return rounds(multiply, kept, dy) ? deltas + DType.BF16.bytes() * y.elements() : deltas;
    }

    private static long deltaBytes(Tensor y, int heads) {
        long bytes = (long) Float.BYTES * y.rows() * heads;
        return Math.ceilDiv(bytes, ALIGNMENT) * ALIGNMENT;
    }

    private static boolean rounds(DType multiply, DType kept, Tensor dy) {
        return multiply == DType.BF16 && kept == DType.BF16 && dy.type() == DType.F32;
    }

    /** What the kernels of the backward are told of {@code dy}: where it lies, and its deltas. */
    private record Known(long dy, long stride, long deltas) {}

    /** Computes {@code dy . y} of each row and head. */
    private Known known(DType multiply, DType kept, Tensor y, Tensor dy, int heads) {
        long deltas = scratch.reserve(backwardBytes(multiply, kept, y, dy, heads));
        boolean rounds = rounds(multiply, kept, dy);
        boolean rounded = dy.type() == DType.BF16;
        long to = rounds ? deltas + deltaBytes(y, heads) : 0;
        launch.begin().view(dy).view(y).wide(deltas);
        if (!rounded) {
            launch.wide(to);
        }
        int headWidth = y.columns() / heads;
        launch.integer(y.rows()).integer(heads).integer(headWidth);
        if (!rounded) {
            launch.integer(multiply == DType.BF16 ? 1 : 0);
        }
        int lanes = headWidth <= 64 ? 16 : 32;
        int blocks = Math.ceilDiv(y.rows() * heads, DELTA_THREADS / lanes);
        launch.run(rounded ? deltaOfHalves : delta, blocks, DELTA_THREADS);
        return rounds
                ? new Known(to, y.columns(), deltas)
                : new Known(launch.address(dy), dy.stride(), deltas);
    }

    /** The parameters that both kernels of the backward begin with. */
    private void backward(Tensor q, Tensor k, Tensor v, Tensor logSumExp, Known known) {
        launch.begin().view(q).view(k).view(v);
        launch.known(known.dy(), known.stride(), logSumExp, known.deltas());
    }

    private void keyValueGradient(
            OfWidth kernels, Span span, boolean accumulates, Tensor dk, Tensor dv) {
        launch.view(dk).view(dv).span(span, accumulates);
        overTiles(kernels.keyValueGradient(), span.keys(), span);
    }

    private void queryGradient(OfWidth kernels, Span span, Tensor dq) {
        launch.view(dq).span(span, span.goesOn());
        overTiles(kernels.queryGradient(), kernels.rowsOfQueries(span), span);
    }

    private void overTiles(Tiles kernel, int rows, Span span) {
        int tiles = Math.ceilDiv(rows, kernel.rows());
        if (tiles == 0) {
            return;
        }
        launch.run(
                kernel.function(),
                tiles,
                span.shape().keyHeads(),
                span.sequences(),
                kernel.threads(),
                kernel.sharedBytes());
    }

    /** From the slice's first row on. */
    private static Tensor queries(Tensor qkv, TokenBlocks blocks) {
        return qkv.rows(blocks.firstToken(), qkv.rows() - blocks.firstToken());
    }

    private static Tensor keys(Tensor qkv, AttentionShape shape) {
        return qkv.columns(shape.queryColumns(), shape.keyColumns());
    }

    private static Tensor values(Tensor qkv, AttentionShape shape) {
        return qkv.columns(shape.queryColumns() + shape.keyColumns(), shape.keyColumns());
    }

    private static Tensor half(Tensor keyValues, int which) {
        int width = keyValues.columns() / 2;
        return keyValues.columns(which * width, width);
    }

    private OfWidth ofWidth(DType multiply, DType kept, Span span) {
        List<OfWidth> ofFactors = kept == DType.BF16 ? keptHalves : halves;
        return ofWidth(multiply == DType.BF16 ? ofFactors : floats, span);
    }

    private static OfWidth ofWidth(List<OfWidth> widths, Span span) {
        int headWidth = span.shape().headSize();
        for (OfWidth each : widths) {
            if (headWidth <= each.width()) {
                return each;
            }
        }
        throw new DeviceException(
                "attention on a GPU: expected heads of at most %d columns, got %d; use more heads, or device.kind = cpu"
                        .formatted(widths.getLast().width(), headWidth));
    }
}
