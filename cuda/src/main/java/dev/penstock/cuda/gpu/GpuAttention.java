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
        int headWidth = y.columns() / heads;
        OfWidth kernels = ofWidth(headWidth);
        launch.begin().view(qkv).view(y).view(logSumExp);
        launch.slice(context, blocks, headWidth, heads);
        launch.run(
                kernels.forward(),
                Math.ceilDiv(blocks.tokens(), TILE),
                heads,
                blocks.sequences(),
                THREADS,
                OfWidth.forwardBytes(kernels.width()));
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
        int headWidth = y.columns() / heads;
        OfWidth kernels = ofWidth(headWidth);
        int sums = y.rows() * heads;
        long deltas = scratch.reserve((long) Float.BYTES * sums);
        launch.begin().view(dy).view(y).wide(deltas);
        launch.integer(y.rows()).integer(heads).integer(headWidth);
        launch.run(delta, Math.ceilDiv(sums, THREADS / 32), THREADS);
        launch.begin().view(qkv).view(logSumExp).wide(deltas).view(dy).view(dQkv);
        launch.slice(context, blocks, headWidth, heads);
        // both take the same parameters
        int keys = blocks.firstToken() + blocks.tokens();
        overTiles(kernels.keyValueGradient(), keys, kernels.width(), heads, blocks);
        overTiles(kernels.queryGradient(), blocks.tokens(), kernels.width(), heads, blocks);
    }

    private void overTiles(
            GpuModule.Function kernel, int rows, int width, int heads, TokenBlocks blocks) {
        int tiles = Math.ceilDiv(rows, TILE);
        int bytes = OfWidth.backwardBytes(width);
        launch.run(kernel, tiles, heads, blocks.sequences(), THREADS, bytes);
    }

    private OfWidth ofWidth(int headWidth) {
        for (OfWidth each : widths) {
            if (headWidth <= each.width()) {
                return each;
            }
        }
        throw new DeviceException(
                "attention on a GPU: expected heads of at most %d columns, got %d; use more heads, or device = cpu"
                        .formatted(WIDTHS[WIDTHS.length - 1], headWidth));
    }
}
