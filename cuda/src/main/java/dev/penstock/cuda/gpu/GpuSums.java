package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.memory.Scratch;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Sums in a fixed order: the kernels of {@code sums.cu} and the weight gradient of a layer norm,
 * which first sum blocks of rows by themselves and then the blocks.
 */
final class GpuSums {
    private static final int THREADS = 128;
    private static final int RUN_THREADS = 256;
    private static final int RUN_ELEMENTS = 16384;
    private static final int MOST_BLOCKS_DOWN = 65535;

    /** Of an answer to the host. */
    static final int RESULT_WORDS = 2;

    /** Tensors of one op that are looked through for NaN and infinities without waiting. */
    static final int MOST_WATCHED = 4096;

    private final Launch launch;
    private final Scratch partial;
    private final Tensor result;
    private final Tensor flags;
    private final GpuElements elements;
    private final GpuModule.Function biasGradientOfBlocks;
    private final GpuModule.Function layerNormBackwardWeightOfBlocks;
    private final GpuModule.Function addInOrder;
    private final GpuModule.Function squaresOfRuns;
    private final GpuModule.Function sumOfRuns;
    private final GpuModule.Function findNonFinite;
    private int watched;

    /**
     * @param partial for sums of blocks
     * @param result of {@link #RESULT_WORDS}, for an answer to the host
     * @param flags of {@link #MOST_WATCHED}, one for each tensor that is watched
     */
    GpuSums(
            GpuModule module,
            Launch launch,
            GpuElements elements,
            Scratch partial,
            Tensor result,
            Tensor flags) {
        this.launch = launch;
        this.elements = elements;
        this.partial = partial;
        this.result = result;
        this.flags = flags;
        biasGradientOfBlocks = module.function("biasGradientOfBlocks");
        layerNormBackwardWeightOfBlocks = module.function("layerNormBackwardWeightOfBlocks");
        addInOrder = module.function("addInOrder");
        squaresOfRuns = module.function("squaresOfRuns");
        sumOfRuns = module.function("sumOfRuns");
        findNonFinite = module.function("findNonFinite");
    }

    /** Of the sums of every block of rows. */
    static long biasBytes(Tensor dy, TokenBlocks blocks) {
        return (long) Float.BYTES * blocks.count() * dy.columns();
    }

    static long normBytes(Tensor dy, TokenBlocks blocks) {
        return 2 * biasBytes(dy, blocks);
    }

    static long squaredNormBytes(Tensor x) {
        return (long) Double.BYTES * runs(x);
    }

    private static int runs(Tensor x) {
        return Math.toIntExact(Math.ceilDiv(x.elements(), (long) RUN_ELEMENTS));
    }

    void biasGradient(Tensor dy, Tensor dBias, TokenBlocks blocks) {
        int columns = dy.columns();
        long sums = partial.reserve(biasBytes(dy, blocks));
        launch.begin().view(dy).wide(sums).integer(columns).order(blocks);
        overBlocks(biasGradientOfBlocks, columns, blocks);
        addInOrder(sums, columns, blocks.count(), dBias);
    }

    void layerNormBackwardWeight(
            Tensor dy,
            Tensor x,
            Tensor mean,
            Tensor rstd,
            Tensor dGain,
            Tensor dBias,
            TokenBlocks blocks) {
        int columns = dy.columns();
        long sums = partial.reserve(normBytes(dy, blocks));
        launch.begin().view(dy).view(x).vector(mean).vector(rstd).wide(sums);
        launch.integer(columns).order(blocks);
        overBlocks(layerNormBackwardWeightOfBlocks, columns, blocks);
        addInOrder(sums, 2L * columns, blocks.count(), dGain);
        addInOrder(sums + (long) Float.BYTES * columns, 2L * columns, blocks.count(), dBias);
    }

    private void overBlocks(GpuModule.Function kernel, int columns, TokenBlocks blocks) {
        int down = Math.min(blocks.count(), MOST_BLOCKS_DOWN);
        launch.run(kernel, Math.ceilDiv(columns, THREADS), down, 1, THREADS, 0);
    }

    private void addInOrder(long sums, long stride, int count, Tensor total) {
        int columns = total.columns();
        launch.begin().wide(sums).wide(stride).integer(count).vector(total).integer(columns);
        launch.run(addInOrder, Math.ceilDiv(columns, THREADS), THREADS);
    }

    /** Waits for the result. */
    double squaredNorm(Tensor x) {
        int runs = runs(x);
        if (runs == 0) {
            return 0;
        }
        long sums = partial.reserve(squaredNormBytes(x));
        launch.begin()
                .vector(x)
                .wide(x.elements())
                .wide(sums)
                .run(squaresOfRuns, runs, RUN_THREADS);
        launch.begin().wide(sums).integer(runs).vector(result).run(sumOfRuns, 1, RUN_THREADS);
        return result.segment().get(ValueLayout.JAVA_DOUBLE, 0);
    }

    /** Waits for the result. */
    boolean allFinite(Tensor x) {
        elements.zero(result);
        findNonFinite(x, result);
        return result.segment().get(ValueLayout.JAVA_INT, 0) == 0;
    }

    private void findNonFinite(Tensor x, Tensor flag) {
        boolean flat = x.isDense() && x.elements() <= Integer.MAX_VALUE;
        int rows = flat ? 1 : x.rows();
        int columns = flat ? (int) x.elements() : x.columns();
        if (rows == 0 || columns == 0) {
            return;
        }
        launch.begin().view(x).integer(rows).integer(columns).vector(flag);
        int along = Math.clamp(Math.ceilDiv(columns, 4 * RUN_THREADS), 1, RUN_ELEMENTS);
        launch.run(findNonFinite, along, Math.min(rows, MOST_BLOCKS_DOWN), 1, RUN_THREADS, 0);
    }

    /** Answers true, unless it had to wait: {@link #firstNotFinite} tells. */
    boolean watchFinite(Tensor x) {
        if (watched == flags.columns()) {
            return allFinite(x);
        }
        if (watched == 0) {
            elements.zero(flags);
        }
        findNonFinite(x, flags.columns(watched++, 1));
        return true;
    }

    /** Waits for what is watched. */
    int firstNotFinite() {
        int count = watched;
        watched = 0;
        if (count == 0) {
            return -1;
        }
        MemorySegment all = flags.segment();
        for (int i = 0; i < count; i++) {
            if (all.getAtIndex(ValueLayout.JAVA_INT, i) != 0) {
                return i;
            }
        }
        return -1;
    }
}
