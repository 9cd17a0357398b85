package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Gelu;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.device.TokenRange;
import dev.penstock.cuda.memory.Scratch;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Sums in a fixed order: the kernels of {@code sums.cu}, the gradients of tables of tokens, and
 * those of biases and of norms' weights, which first sum blocks of rows by themselves and then the
 * blocks.
 */
final class GpuSums {
    private static final int THREADS = 128;

    /** Of threads with four columns each; the fewer, the more blocks for a GPU to spread. */
    private static final int FOURS_THREADS = 64;

    private static final int RUN_THREADS = 256;

    /** Elements of a thread that looks at each of a tensor: four loads of four. */
    private static final int PER_THREAD = 16;

    private static final int RUN_ELEMENTS = 16384;
    private static final int MOST_BLOCKS_DOWN = 65535;

    /** Squared norms for which the host waits once. */
    private static final int MOST_NORMS = 1024;

    /** Tensors of one op that are looked through for NaN and infinities without waiting. */
    private static final int MOST_WATCHED = 4096;

    private static final long FLAGS_AT = (long) Double.BYTES * MOST_NORMS;

    private static final long SQUARED_AT =
            FLAGS_AT + Math.ceilDiv((1L + MOST_WATCHED) * Integer.BYTES, Long.BYTES) * Long.BYTES;

    /** Of a {@code Squared}: address, elements, first run. */
    private static final int SQUARED_BYTES = 3 * Long.BYTES;

    private static final long WATCHED_AT = SQUARED_AT + (long) SQUARED_BYTES * MOST_NORMS;

    /** Of a {@code Watched}: address, stride, rows, columns, type, flag. */
    private static final int WATCHED_BYTES = 2 * Long.BYTES + 4 * Integer.BYTES;

    /**
     * Squared norms; a flag, for which the host waits at once; flags of tensors watched; and, for
     * kernels to read, the tensors whose norms are wanted, and those that are looked at later.
     */
    static final long ANSWER_BYTES = WATCHED_AT + (long) WATCHED_BYTES * MOST_WATCHED;

    /** Of each tensor that is looked at later. */
    private static final int MOST_BLOCKS_WATCHING = 64;

    /** Of kernels whose threads take items in turns. */
    private static final int MOST_BLOCKS = 1024;

    private static final int SCAN_THREADS = 1024;

    /** Of {@code layerNormBackward768} and {@code 1024}: columns, and rows at a time. */
    private static final int NARROW_ROW_COLUMNS = 768;

    private static final int NARROW_ROWS_AT_ONCE = 12;
    private static final int ROW_COLUMNS = 1024;
    private static final int ROWS_AT_ONCE = 8;

    /** Two numbers of each column of a row. */
    private static final int COLUMN_BYTES = 2 * Float.BYTES;

    private static final int LEAST_BLOCKS_TOGETHER = 64;

    private final Launch launch;
    private final Scratch partial;
    private final Answers answers;
    private final GpuModule.Function biasGradientOfBlocks;
    private final GpuModule.Function biasGradientOfHalves;
    private final GpuModule.Function biasGradientRounded;
    private final GpuModule.Function geluBackwardRounded;
    private final GpuModule.Function exactGeluBackwardRounded;
    private final GpuModule.Function layerNormBackwardWeightOfBlocks;
    private final GpuModule.Function layerNormBackwardWeightOfHalves;
    private final GpuModule.Function layerNormBackward768;
    private final GpuModule.Function layerNormBackward768OfHalves;
    private final GpuModule.Function layerNormBackward1024;
    private final GpuModule.Function layerNormBackward1024OfHalves;
    private final GpuModule.Function rmsNormBackwardWeightOfBlocks;
    private final GpuModule.Function addInOrder;
    private final GpuModule.Function squaresOfRuns;
    private final GpuModule.Function sumsOfRuns;
    private final GpuModule.Function copyWords;
    private final GpuModule.Function clearCounts;
    private final GpuModule.Function countTokens;
    private final GpuModule.Function startLists;
    private final GpuModule.Function listPositions;
    private final GpuModule.Function embeddingBackward;
    private final GpuModule.Function foldGradient;
    private final GpuModule.Function findNonFinite;
    private final GpuModule.Function findNonFiniteHalves;
    private final GpuModule.Function findNonFiniteOfAll;
    private int watched;

    /** Of those watched, how many are yet to be looked at, and the elements of the largest. */
    private int later;

    private long mostElements;

    /**
     * @param partial for sums of blocks
     * @param answers of {@link #ANSWER_BYTES}, for the host
     */
    GpuSums(GpuModule module, Launch launch, Scratch partial, Answers answers) {
        this.launch = launch;
        this.partial = partial;
        this.answers = answers;
        biasGradientOfBlocks = module.function("biasGradientOfBlocks");
        biasGradientOfHalves = module.function("biasGradientOfHalves");
        biasGradientRounded = module.function("biasGradientRounded");
        geluBackwardRounded = module.function("geluBackwardRounded");
        exactGeluBackwardRounded = module.function("exactGeluBackwardRounded");
        layerNormBackwardWeightOfBlocks = module.function("layerNormBackwardWeightOfBlocks");
        layerNormBackwardWeightOfHalves = module.function("layerNormBackwardWeightOfHalves");
        int narrowBytes = COLUMN_BYTES * NARROW_ROW_COLUMNS * NARROW_ROWS_AT_ONCE;
        layerNormBackward768 = module.function("layerNormBackward768", narrowBytes);
        layerNormBackward768OfHalves = module.function("layerNormBackward768OfHalves", narrowBytes);
        int wideBytes = COLUMN_BYTES * ROW_COLUMNS * ROWS_AT_ONCE;
        layerNormBackward1024 = module.function("layerNormBackward1024", wideBytes);
        layerNormBackward1024OfHalves = module.function("layerNormBackward1024OfHalves", wideBytes);
        rmsNormBackwardWeightOfBlocks = module.function("rmsNormBackwardWeightOfBlocks");
        addInOrder = module.function("addInOrder");
        squaresOfRuns = module.function("squaresOfRuns");
        sumsOfRuns = module.function("sumsOfRuns");
        copyWords = module.function("copyWords");
        clearCounts = module.function("clearCounts");
        countTokens = module.function("countTokens");
        startLists = module.function("startLists");
        listPositions = module.function("listPositions");
        embeddingBackward = module.function("embeddingBackward");
        foldGradient = module.function("foldGradient");
        findNonFinite = module.function("findNonFinite");
        findNonFiniteHalves = module.function("findNonFiniteHalves");
        findNonFiniteOfAll = module.function("findNonFiniteOfAll");
    }

    /** Of the sums of every block of rows. */
    static long biasBytes(Tensor dy, TokenBlocks blocks) {
        return (long) Float.BYTES * blocks.count() * dy.columns();
    }

    static long normBytes(Tensor dy, TokenBlocks blocks) {
        return 2 * biasBytes(dy, blocks);
    }

    /** Of the sums of every run, and of the tensors. */
    static long squaredNormBytes(List<Tensor> tensors) {
        long most = 0;
        for (int first = 0; first < tensors.size(); first += MOST_NORMS) {
            List<Tensor> some = atOnce(tensors, first);
            long runs = some.stream().mapToLong(GpuSums::runs).sum();
            most = Math.max(most, Double.BYTES * runs + (long) SQUARED_BYTES * some.size());
        }
        return most;
    }

    private static List<Tensor> atOnce(List<Tensor> tensors, int first) {
        return tensors.subList(first, Math.min(tensors.size(), first + MOST_NORMS));
    }

    /** Of where the list of each token starts and ends, and of the lists. */
    static long embeddingBytes(Tensor dy, Tensor dTable) {
        return Integer.BYTES * (2L * dTable.rows() + dy.rows());
    }

    private static int runs(Tensor x) {
        return Math.toIntExact(Math.ceilDiv(x.elements(), (long) RUN_ELEMENTS));
    }

    void biasGradient(Tensor dy, Tensor dBias, TokenBlocks blocks) {
        int columns = dy.columns();
        long sums = partial.reserve(biasBytes(dy, blocks));
        launch.begin().view(dy).wide(sums).integer(columns).order(blocks);
        overFours(
                dy.type() == DType.BF16 ? biasGradientOfHalves : biasGradientOfBlocks,
                columns,
                blocks);
        addInOrder(sums, columns, blocks.count(), dBias);
    }

    void biasGradientRounded(Tensor dy, Tensor dBias, TokenBlocks blocks, Tensor y) {
        int columns = dy.columns();
        long sums = partial.reserve(biasBytes(dy, blocks));
        launch.begin().view(dy).view(y).wide(sums).integer(columns).order(blocks);
        overFours(biasGradientRounded, columns, blocks);
        addInOrder(sums, columns, blocks.count(), dBias);
    }

    void geluBackwardRounded(
            Tensor pre,
            Tensor bias,
            Tensor dy,
            Gelu form,
            Tensor dPre,
            @Nullable Tensor dBias,
            TokenBlocks blocks) {
        int columns = dy.columns();
        long sums = dBias == null ? 0 : partial.reserve(biasBytes(dy, blocks));
        launch.begin().view(pre).vector(bias).view(dy).view(dPre).wide(sums);
        launch.integer(columns).order(blocks);
        overFours(
                switch (form) {
                    case TANH -> geluBackwardRounded;
                    case EXACT -> exactGeluBackwardRounded;
                },
                columns,
                blocks);
        if (dBias != null) {
            addInOrder(sums, columns, blocks.count(), dBias);
        }
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
        boolean halves = dy.type() == DType.BF16;
        overBlocks(
                halves ? layerNormBackwardWeightOfHalves : layerNormBackwardWeightOfBlocks,
                columns,
                blocks);
        addInOrder(sums, 2L * columns, blocks.count(), dGain, dBias);
    }

    /**
     * Whether there is a kernel that makes the gradients of a layer norm's input and weights in one
     * pass, and enough for it to do: it has a block of threads for each block of rows.
     */
    static boolean areTogether(int columns, TokenBlocks blocks) {
        return columns <= ROW_COLUMNS && blocks.count() >= LEAST_BLOCKS_TOGETHER;
    }

    void layerNormBackward(
            Tensor dy,
            Tensor x,
            Tensor gain,
            Tensor mean,
            Tensor rstd,
            Tensor dx,
            Tensor dGain,
            Tensor dBias,
            TokenBlocks blocks) {
        int columns = dy.columns();
        boolean narrow = columns <= NARROW_ROW_COLUMNS;
        int rows = narrow ? NARROW_ROWS_AT_ONCE : ROWS_AT_ONCE;
        long sums = partial.reserve(normBytes(dy, blocks));
        launch.begin().view(dy).view(x).vector(gain).vector(mean).vector(rstd).view(dx);
        launch.wide(sums).integer(columns).order(blocks);
        boolean halves = dy.type() == DType.BF16;
        GpuModule.Function of768 = halves ? layerNormBackward768OfHalves : layerNormBackward768;
        GpuModule.Function of1024 = halves ? layerNormBackward1024OfHalves : layerNormBackward1024;
        launch.run(
                narrow ? of768 : of1024,
                blocks.count(),
                1,
                1,
                32 * rows,
                COLUMN_BYTES * columns * rows);
        addInOrder(sums, 2L * columns, blocks.count(), dGain, dBias);
    }

    void rmsNormBackwardWeight(Tensor dy, Tensor x, Tensor r, Tensor dGain, TokenBlocks blocks) {
        int columns = dGain.columns();
        long sums = partial.reserve(biasBytes(dGain, blocks));
        launch.begin().view(dy).view(x).vector(r).wide(sums);
        launch.integer(x.columns() / columns).integer(columns).order(blocks);
        overBlocks(rmsNormBackwardWeightOfBlocks, columns, blocks);
        addInOrder(sums, columns, blocks.count(), dGain);
    }

    private void overBlocks(GpuModule.Function kernel, int columns, TokenBlocks blocks) {
        int down = Math.min(blocks.count(), MOST_BLOCKS_DOWN);
        launch.run(kernel, Math.ceilDiv(columns, THREADS), down, 1, THREADS, 0);
    }

    private void overFours(GpuModule.Function kernel, int columns, TokenBlocks blocks) {
        int down = Math.min(blocks.count(), MOST_BLOCKS_DOWN);
        int along = Math.ceilDiv(columns, 4 * FOURS_THREADS);
        launch.run(kernel, along, down, 1, FOURS_THREADS, 0);
    }

    private void addInOrder(long sums, long stride, int count, Tensor total) {
        int columns = total.columns();
        launch.begin().wide(sums).wide(stride).integer(count).vector(total).wide(0);
        launch.integer(columns).run(addInOrder, Math.ceilDiv(columns, THREADS), THREADS);
    }

    /** Of two rows of sums side by side. */
    private void addInOrder(long sums, long stride, int count, Tensor total, Tensor other) {
        int columns = total.columns();
        launch.begin().wide(sums).wide(stride).integer(count).vector(total).vector(other);
        launch.integer(columns).run(addInOrder, Math.ceilDiv(2 * columns, THREADS), THREADS);
    }

    /** Tokens were checked. */
    void embeddingBackward(
            Tensor dy, Tensor tokens, TokenRange range, Tensor dTable, TokenBlocks blocks) {
        int count = dTable.rows();
        int rows = dy.rows();
        if (count == 0 || rows == 0) {
            return;
        }
        long starts = partial.reserve(embeddingBytes(dy, dTable));
        long ends = starts + (long) Integer.BYTES * count;
        long lists = ends + (long) Integer.BYTES * count;
        launch.begin().wide(starts).integer(count).run(clearCounts, blocks(count), RUN_THREADS);
        launch.begin().vector(tokens).range(range, count).wide(starts).integer(rows);
        launch.run(countTokens, blocks(rows), RUN_THREADS);
        launch.begin().wide(starts).wide(ends).integer(count).run(startLists, 1, SCAN_THREADS);
        launch.begin().vector(tokens).range(range, count).wide(ends).wide(lists);
        launch.integer(rows).order(blocks).run(listPositions, blocks(rows), RUN_THREADS);
        launch.begin().view(dy).vector(tokens).range(range, count).view(dTable);
        launch.wide(starts).wide(ends).wide(lists).integer(rows).integer(dy.columns());
        launch.order(blocks).run(embeddingBackward, rows, THREADS);
    }

    private static int blocks(int items) {
        return Math.min(Math.ceilDiv(items, RUN_THREADS), MOST_BLOCKS);
    }

    /** Waits once for many. */
    double[] squaredNorms(List<Tensor> tensors) {
        double[] norms = new double[tensors.size()];
        for (int first = 0; first < norms.length; first += MOST_NORMS) {
            List<Tensor> some = atOnce(tensors, first);
            sumSquares(some);
            MemorySegment words = answers.await();
            MemorySegment.copy(words, ValueLayout.JAVA_DOUBLE, 0, norms, first, some.size());
        }
        return norms;
    }

    /** Nobody reads the tensors of an earlier call any more: it waited. */
    private void sumSquares(List<Tensor> tensors) {
        int count = tensors.size();
        MemorySegment written = answers.words().asSlice(SQUARED_AT);
        int runs = 0;
        for (int i = 0; i < count; i++) {
            Tensor x = tensors.get(i);
            written.setAtIndex(ValueLayout.JAVA_LONG, 3L * i, launch.address(x));
            written.setAtIndex(ValueLayout.JAVA_LONG, 3L * i + 1, x.elements());
            written.setAtIndex(ValueLayout.JAVA_LONG, 3L * i + 2, runs);
            runs = Math.addExact(runs, runs(x));
        }
        long squared = partial.reserve(squaredNormBytes(tensors));
        long sums = squared + (long) SQUARED_BYTES * count;
        int words = SQUARED_BYTES / Integer.BYTES * count;
        launch.begin().view(answers.address(SQUARED_AT), words).view(squared, words);
        launch.integer(1).integer(words).run(copyWords, Math.ceilDiv(words, 4 * THREADS), THREADS);
        if (runs > 0) {
            launch.begin().wide(squared).integer(count).wide(sums);
            launch.run(squaresOfRuns, runs, RUN_THREADS);
        }
        launch.begin().wide(squared).wide(sums).wide(answers.address(0));
        launch.run(sumsOfRuns, count, RUN_THREADS);
    }

    /** Waits for the result. */
    boolean allFinite(Tensor x) {
        findNonFinite(x, 0);
        return !takeFlag(answers.await(), 0);
    }

    /** Flags are down unless a kernel found something. */
    private static boolean takeFlag(MemorySegment words, int flag) {
        long at = FLAGS_AT + (long) Integer.BYTES * flag;
        boolean found = words.get(ValueLayout.JAVA_INT, at) != 0;
        words.set(ValueLayout.JAVA_INT, at, 0);
        return found;
    }

    /** Answers true, unless it had to wait: {@link #firstNotFinite} tells. */
    boolean foldGradient(Tensor gradient, Tensor sum, float limit, boolean accumulate) {
        boolean waits = watched == MOST_WATCHED;
        int flag = waits ? 0 : ++watched;
        boolean flat = gradient.elements() <= Integer.MAX_VALUE;
        int rows = flat ? 1 : gradient.rows();
        int columns = flat ? (int) gradient.elements() : gradient.columns();
        if (rows > 0 && columns > 0) {
            launch.begin().view(gradient).view(sum).integer(rows).integer(columns).number(limit);
            launch.integer(accumulate ? 1 : 0);
            launch.wide(answers.address(FLAGS_AT + (long) Integer.BYTES * flag));
            int along =
                    Math.clamp(Math.ceilDiv(columns, PER_THREAD * RUN_THREADS), 1, RUN_ELEMENTS);
            int threads = Math.ceilDiv(Math.min(columns, RUN_THREADS), 32) * 32;
            launch.run(foldGradient, along, Math.min(rows, MOST_BLOCKS_DOWN), 1, threads, 0);
        }
        return !waits || !takeFlag(answers.await(), 0);
    }

    private void findNonFinite(Tensor x, int flag) {
        boolean flat = x.isDense() && x.elements() <= Integer.MAX_VALUE;
        int rows = flat ? 1 : x.rows();
        int columns = flat ? (int) x.elements() : x.columns();
        if (rows == 0 || columns == 0) {
            return;
        }
        launch.begin().view(x).integer(rows).integer(columns);
        launch.wide(answers.address(FLAGS_AT + (long) Integer.BYTES * flag));
        int along = Math.clamp(Math.ceilDiv(columns, PER_THREAD * RUN_THREADS), 1, RUN_ELEMENTS);
        int threads = Math.ceilDiv(Math.min(columns, RUN_THREADS), 32) * 32;
        GpuModule.Function kernel = x.type() == DType.BF16 ? findNonFiniteHalves : findNonFinite;
        launch.run(kernel, along, Math.min(rows, MOST_BLOCKS_DOWN), 1, threads, 0);
    }

    /** Answers true, unless it had to wait: {@link #firstNotFinite} tells. */
    boolean watchFinite(Tensor x) {
        if (watched == MOST_WATCHED) {
            return allFinite(x);
        }
        findNonFinite(x, ++watched);
        return true;
    }

    /**
     * Answers as {@link #watchFinite}. Nobody reads the tensors of an earlier time any more: {@link
     * #firstNotFinite} waited.
     */
    boolean watchFiniteLater(Tensor x) {
        if (watched == MOST_WATCHED) {
            return allFinite(x);
        }
        MemorySegment words = answers.words();
        long at = WATCHED_AT + (long) WATCHED_BYTES * later++;
        words.set(ValueLayout.JAVA_LONG, at, launch.address(x));
        words.set(ValueLayout.JAVA_LONG, at + 8, x.stride());
        words.set(ValueLayout.JAVA_INT, at + 16, x.rows());
        words.set(ValueLayout.JAVA_INT, at + 20, x.columns());
        words.set(ValueLayout.JAVA_INT, at + 24, x.type() == DType.BF16 ? 1 : 0);
        words.set(ValueLayout.JAVA_INT, at + 28, ++watched);
        mostElements = Math.max(mostElements, x.elements());
        return true;
    }

    private void lookAtAll() {
        int count = later;
        if (count > 0) {
            launch.begin().wide(answers.address(WATCHED_AT)).wide(answers.address(FLAGS_AT));
            int along =
                    Math.clamp(
                            Math.ceilDiv(mostElements, 4L * RUN_THREADS), 1, MOST_BLOCKS_WATCHING);
            launch.run(findNonFiniteOfAll, along, count, 1, RUN_THREADS, 0);
        }
        later = 0;
        mostElements = 0;
    }

    /** Those that are yet to be looked at may not be there any more. */
    void watchNone() {
        later = 0;
        mostElements = 0;
        firstNotFinite();
    }

    /** Waits for what is watched. */
    int firstNotFinite() {
        int count = watched;
        if (count == 0) {
            return -1;
        }
        lookAtAll();
        MemorySegment words = answers.await();
        watched = 0; // not before: if that fails, the flags are still to be taken
        int first = -1;
        for (int i = count - 1; i >= 0; i--) {
            first = takeFlag(words, 1 + i) ? i : first;
        }
        return first;
    }
}
