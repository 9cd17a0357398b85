package dev.penstock.benchmarks.roofline;

import dev.penstock.benchmarks.roofline.Work.Kind;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The kernels of a training step of GPT-2's shape: one stage on one GPU, products by cuBLAS,
 * attention's heads of 64 columns. There is no such model of the Llama family.
 *
 * @param sequences of a micro-batch
 * @param block tokens of device.reduction-block
 * @param logitsBytes for logits that exist at the same time
 * @param joined whether cublasLt's products do what follows them: of bf16 alone
 */
public record Gpt2Step(
        int layers,
        int width,
        int heads,
        int context,
        int vocabulary,
        int sequences,
        int microBatches,
        int block,
        long logitsBytes,
        boolean bf16,
        boolean joined) {
    private static final int FLOAT = 4;
    private static final int HALF = 2;

    /** Of what kernels read about each tensor that they take together. */
    private static final int WATCHED_BYTES = 32;

    private static final int SQUARED_BYTES = 24;
    private static final int UPDATED_BYTES = 64;
    private static final int RUN_ELEMENTS = 16_384;

    /** Where a side of this length is no multiple of 8, a product is done in two parts. */
    private static final int LONG_SIDE = 1_024;

    private static final int TOGETHER_COLUMNS = 1_024;
    private static final int TOGETHER_BLOCKS = 64;

    /** A step of one micro-batch with the settings that a run has by default. */
    public static Gpt2Step of(
            int layers,
            int width,
            int heads,
            int context,
            int vocabulary,
            int sequences,
            boolean bf16,
            boolean joined) {
        return new Gpt2Step(
                layers,
                width,
                heads,
                context,
                vocabulary,
                sequences,
                1,
                128,
                512L << 20,
                bf16,
                joined);
    }

    /** Returns the work of each kernel, the work of a name together. */
    public List<Work> works() {
        List<Work> all = new ArrayList<>();
        for (int microBatch = 0; microBatch < microBatches; microBatch++) {
            forward(all);
            backward(all);
        }
        update(all);
        if (joined && !bf16) {
            throw new IllegalArgumentException("expected bf16 where products are joined");
        }
        Map<String, Work> byName = new LinkedHashMap<>();
        all.forEach(each -> byName.merge(each.kernel() + each.kind(), each, Work::plus));
        return List.copyOf(byName.values());
    }

    private void forward(List<Work> to) {
        embedding(to);
        for (int layer = 0; layer < layers; layer++) {
            attentionForward(to);
            mlpForward(to);
        }
        norm(to);
    }

    private void backward(List<Work> to) {
        head(to);
        normBackward(to, false);
        for (int layer = 0; layer < layers; layer++) {
            mlpBackward(to);
            attentionBackward(to);
            to.add(Work.elements("findNonFinite", 1, floats(width), 0));
        }
        embeddingBackward(to);
        // biases of the four products of a layer and of all norms
        double watched = 6.0 * layers + 1;
        double columns = (11.0 * layers + 1) * width;
        double read = WATCHED_BYTES * watched + FLOAT * columns;
        to.add(Work.elements("findNonFiniteOfAll", 1, read, 0));
    }

    /** Elements of each weight and bias, the table of tokens once. */
    private List<Double> tensors() {
        double d = width;
        List<Double> all = new ArrayList<>(List.of(vocabulary * d, context * d, d, d));
        for (int layer = 0; layer < layers; layer++) {
            all.addAll(List.of(d, d, 3 * d * d, 3 * d, d * d, d));
            all.addAll(List.of(d, d, 4 * d * d, 4 * d, 4 * d * d, d));
        }
        return all;
    }

    /** Rows of a micro-batch. */
    private double rows() {
        return (double) sequences * context;
    }

    private int blocksOfSequence() {
        return Math.ceilDiv(context, block);
    }

    private double blocks() {
        return (double) sequences * blocksOfSequence();
    }

    /** Bytes of a tensor of F32 of all rows. */
    private double floats(double columns) {
        return FLOAT * rows() * columns;
    }

    private double halves(double columns) {
        return HALF * rows() * columns;
    }

    /** Bytes of what products read. */
    private double factors(double columns) {
        return bf16 ? halves(columns) : floats(columns);
    }

    /** How many different tokens a micro-batch is likely to have, if each is as likely. */
    private double distinctTokens() {
        return vocabulary * (1 - Math.pow(1 - 1.0 / vocabulary, rows()));
    }

    private void embedding(List<Work> to) {
        double table = FLOAT * distinctTokens() * width;
        to.add(Work.elements("embedding", 1, FLOAT * rows() + table, floats(width)));
        to.add(Work.elements("add", sequences, 2 * floats(width), floats(width)));
    }

    private void norm(List<Work> to) {
        String kernel = bf16 ? "layerNormRounded" : "layerNorm";
        double read = floats(width) + 2.0 * FLOAT * width;
        to.add(Work.elements(kernel, 1, read, factors(width) + 2 * floats(1)));
        to.add(Work.elements("findNonFinite", 1, floats(1), 0));
    }

    /**
     * @param halves whether the gradient of its output is rounded
     */
    private void normBackward(List<Work> to, boolean halves) {
        double partial = 2.0 * FLOAT * width * blocks();
        double gain = FLOAT * width;
        double moments = 2 * floats(1);
        double dy = halves ? halves(width) : floats(width);
        if (width <= TOGETHER_COLUMNS && blocks() >= TOGETHER_BLOCKS) {
            String kernel = width <= 768 ? "layerNormBackward768" : "layerNormBackward1024";
            double read = 2 * floats(width) + dy + moments + gain;
            kernel += halves ? "OfHalves" : "";
            to.add(Work.elements(kernel, 1, read, floats(width) + partial));
        } else {
            double read = 2 * floats(width) + dy + moments + gain;
            String input = "layerNormBackwardInput" + (halves ? "OfHalves" : "");
            to.add(Work.elements(input, 1, read, floats(width)));
            read = floats(width) + dy + moments;
            String weight = "layerNormBackwardWeightOf" + (halves ? "Halves" : "Blocks");
            to.add(Work.elements(weight, 1, read, partial));
        }
        addInOrder(to, 2L * width);
    }

    private void addInOrder(List<Work> to, long columns) {
        double sums = FLOAT * columns;
        to.add(Work.elements("addInOrder", 1, sums * blocks() + sums, sums));
    }

    private Work product(double m, double n, double k, boolean adds) {
        double factor = bf16 ? HALF : FLOAT;
        double result = FLOAT * m * n;
        double read = factor * (m * k + k * n) + (adds ? result : 0);
        return new Work("product", Kind.PRODUCTS, 1, read, result, 2 * m * n * k);
    }

    /**
     * A product that cublasLt does together with what follows it, n rows.
     *
     * @param result bytes of what it writes
     * @param added bytes of what it reads besides its factors
     */
    private Work joined(String epilogue, double n, double k, double result, double added) {
        double read = HALF * (rows() * k + k * n) + added;
        String name = "product with " + epilogue;
        return new Work(name, Kind.PRODUCTS, 1, read, result, 2 * rows() * n * k);
    }

    private void attentionForward(List<Work> to) {
        norm(to);
        if (joined) {
            roundedBias(to, 3 * width);
            double vector = HALF * 3.0 * width;
            to.add(joined("bias", 3.0 * width, width, halves(3 * width), vector));
            attention(to);
            to.add(withBiasAndResidual(width));
            return;
        }
        to.add(product(rows(), 3.0 * width, width, false));
        double bias = 3.0 * FLOAT * width;
        double result = bf16 ? halves(3 * width) : floats(3 * width);
        to.add(
                Work.elements(
                        bf16 ? "addBiasRounded" : "addBias", 1, floats(3 * width) + bias, result));
        attention(to);
        to.add(product(rows(), width, width, false));
        addBiasAndResidual(to);
    }

    private Work withBiasAndResidual(double k) {
        double added = floats(width) + FLOAT * width;
        return joined("bias and residual", width, k, floats(width), added);
    }

    /** Biases that are added to bf16 are rounded first. */
    private static void roundedBias(List<Work> to, int columns) {
        to.add(Work.elements("narrow", 1, FLOAT * columns, HALF * columns));
    }

    private void attention(List<Work> to) {
        to.add(
                new Work(
                        bf16 ? "attentionOfKeptHalves64" : "attention64",
                        Kind.ATTENTION,
                        1,
                        factors(3 * width),
                        floats(width) + floats(heads),
                        4 * scores(64)));
        if (bf16) {
            to.add(Work.elements("narrow", 1, floats(width), halves(width)));
        }
    }

    private void addBiasAndResidual(List<Work> to) {
        double read = 2 * floats(width) + FLOAT * width;
        to.add(Work.elements("addBiasAndResidual", 1, read, floats(width)));
    }

    /**
     * Products of a query's column and a key's, of all heads: rows of 16 queries meet keys by
     * tiles, the last of which is masked in part.
     */
    private double scores(int tile) {
        double seen = 0;
        for (int last = 16; last < context + 16; last += 16) {
            seen += 16 * Math.ceil(Math.min(last, context) / (double) tile) * tile;
        }
        return seen * sequences * width;
    }

    private void mlpForward(List<Work> to) {
        norm(to);
        if (joined) {
            roundedBias(to, 4 * width);
            double both = 2 * halves(4 * width);
            to.add(joined("bias and GELU", 4.0 * width, width, both, HALF * 4.0 * width));
            to.add(withBiasAndResidual(4.0 * width));
            return;
        }
        to.add(product(rows(), 4.0 * width, width, false));
        double bias = 4.0 * FLOAT * width;
        if (bf16) {
            double read = floats(4 * width) + bias;
            to.add(Work.elements("geluRounded", 1, read, halves(4 * width)));
        } else {
            double read = floats(4 * width) + bias;
            to.add(Work.elements("biasGelu", 1, read, 2 * floats(4 * width)));
        }
        to.add(product(rows(), width, 4.0 * width, false));
        addBiasAndResidual(to);
    }

    /** The rows of each chunk that has its logits at the same time: whole sequences if they fit. */
    private List<Integer> chunks() {
        int all = sequences * context;
        int fitting = (int) (logitsBytes / FLOAT / vocabulary / block * block);
        int most = Math.max(block, Math.min(all, fitting));
        boolean whole = context <= most || blocksOfSequence() == 1;
        int of = whole ? Math.max(1, most / context) * context : most;
        List<Integer> chunks = new ArrayList<>();
        for (int cut = whole ? 1 : sequences; cut > 0; cut--) {
            int left = whole ? all : context;
            for (; left > 0; left -= of) {
                chunks.add(Math.min(left, of));
            }
        }
        return chunks;
    }

    /** Chunk by chunk: logits, losses with their gradients, and both gradients. */
    private void head(List<Work> to) {
        int rest = bf16 && vocabulary >= LONG_SIDE ? vocabulary % 8 : 0;
        int even = vocabulary - rest;
        List<Integer> chunks = chunks();
        for (int rows : chunks) {
            to.add(ofHead(logits(rows, even)));
            to.add(ofHead(product(rows, width, even, false)));
            to.add(ofHead(product(even, width, rows, true)));
            if (rest > 0) {
                to.add(ofHead(product(rows, width, rest, true)));
                double left = HALF * ((double) rows * width + (double) rest * width);
                double column = FLOAT * (double) rows * rest;
                String dots = joined ? "dotsOfHalvesRounded" : "dotsOfHalves";
                to.add(Work.elements(dots, 1, left, joined ? column / 2 : column));
                double row = FLOAT * (double) rest * width;
                double right = HALF * ((double) rows * width + (double) rows * rest);
                to.add(Work.elements("columnDotsOfHalves", 1, right + row, row));
            }
        }
        double logits = joined ? halves(vocabulary) : floats(vocabulary);
        int runs = Math.max(sequences, chunks.size());
        double targets = floats(1);
        if (joined) {
            double written = logits + floats(1);
            to.add(Work.elements("crossEntropyOfHalves", runs, logits + targets, written));
        } else if (bf16) {
            double read = logits + targets;
            double written = halves(vocabulary) + floats(1);
            to.add(Work.elements("crossEntropyOfRowsRounded", runs, read, written));
        } else {
            double parts = 3 * floats(1);
            to.add(Work.elements("softmaxPart", runs, logits + targets, logits + parts));
            to.add(
                    Work.elements(
                            "crossEntropy", runs, logits + parts + targets, logits + floats(1)));
        }
        to.add(Work.elements("findNonFinite", runs, floats(1), 0));
        to.add(Work.elements("zero", 1, 0, floats(width)));
    }

    private Work logits(double rows, double columns) {
        Work inFloats = product(rows, columns, width, false);
        double written = joined ? inFloats.written() / 2 : inFloats.written();
        return new Work(
                joined ? "product with rounding" : inFloats.kernel(),
                inFloats.kind(),
                1,
                inFloats.read(),
                written,
                inFloats.operations());
    }

    private static Work ofHead(Work product) {
        return new Work(
                product.kernel(),
                Kind.HEAD_PRODUCTS,
                product.launches(),
                product.read(),
                product.written(),
                product.operations());
    }

    private void biasGradient(List<Work> to, long columns) {
        double partial = FLOAT * columns * blocks();
        if (bf16) {
            double written = halves(columns) + partial;
            to.add(Work.elements("biasGradientRounded", 1, floats(columns), written));
        } else {
            to.add(Work.elements("biasGradientOfBlocks", 1, floats(columns), partial));
        }
        addInOrder(to, columns);
    }

    private void biasGradientOfHalves(List<Work> to, long columns) {
        double partial = FLOAT * columns * blocks();
        to.add(Work.elements("biasGradientOfHalves", 1, halves(columns), partial));
        addInOrder(to, columns);
    }

    /** The gradient of a product's input in bf16, and that of its weights. */
    private void joinedBackward(List<Work> to, double in, double out) {
        to.add(joined("rounding", in, out, halves(in), 0));
        to.add(product(in, out, rows(), true));
    }

    /** The gradients of a product's input [n, in] and of its weights [in, out]. */
    private void productsBackward(List<Work> to, double in, double out) {
        to.add(product(rows(), in, out, false));
        to.add(product(in, out, rows(), true));
    }

    private void mlpBackward(List<Work> to) {
        biasGradient(to, width);
        int hidden = 4 * width;
        if (joined) {
            to.add(joined("gradient of GELU", hidden, width, halves(hidden), halves(hidden)));
            to.add(product(hidden, width, rows(), true));
            biasGradientOfHalves(to, hidden);
            joinedBackward(to, width, hidden);
            normBackward(to, joined);
            return;
        }
        productsBackward(to, 4.0 * width, width);
        if (bf16) {
            double partial = FLOAT * hidden * blocks();
            double read = 2 * floats(hidden) + FLOAT * hidden;
            to.add(Work.elements("geluBackwardRounded", 1, read, halves(hidden) + partial));
            addInOrder(to, hidden);
        } else {
            to.add(Work.elements("geluBackward", 1, 2 * floats(hidden), floats(hidden)));
            biasGradient(to, hidden);
        }
        productsBackward(to, width, hidden);
        normBackward(to, joined);
    }

    private void attentionBackward(List<Work> to) {
        biasGradient(to, width);
        double known = 2 * floats(heads);
        if (joined) {
            joinedBackward(to, width, width);
            double both = floats(width) + halves(width);
            to.add(Work.elements("attentionDeltaOfHalves", 1, both, floats(heads)));
        } else {
            productsBackward(to, width, width);
            double written = floats(heads) + (bf16 ? halves(width) : 0);
            to.add(Work.elements("attentionDelta", 1, 2 * floats(width), written));
        }
        double read = factors(3 * width) + factors(width) + known;
        int tile = bf16 ? 16 : 32;
        to.add(
                new Work(
                        nameOfGradient("KeyValue", "keyValue"),
                        Kind.ATTENTION_BACKWARD,
                        1,
                        read,
                        joined ? 2 * halves(width) : 2 * floats(width),
                        8 * scores(tile)));
        to.add(
                new Work(
                        nameOfGradient("Query", "query"),
                        Kind.ATTENTION_BACKWARD,
                        1,
                        read,
                        joined ? halves(width) : floats(width),
                        6 * scores(tile)));
        if (joined) {
            biasGradientOfHalves(to, 3L * width);
            joinedBackward(to, width, 3.0 * width);
        } else {
            biasGradient(to, 3L * width);
            productsBackward(to, width, 3.0 * width);
        }
        normBackward(to, joined);
    }

    private String nameOfGradient(String inside, String first) {
        if (joined) {
            return "rounded" + inside + "GradientOfKeptHalves64";
        }
        return first + (bf16 ? "GradientOfKeptHalves64" : "Gradient64");
    }

    private void embeddingBackward(List<Work> to) {
        double counts = (double) FLOAT * vocabulary;
        double tokens = floats(1);
        double found = FLOAT * distinctTokens();
        to.add(Work.elements("clearCounts", 1, 0, counts));
        to.add(Work.elements("countTokens", 1, tokens + found, found));
        to.add(Work.elements("startLists", 1, counts, 2 * counts));
        to.add(Work.elements("listPositions", 1, tokens + found, found + tokens));
        double sums = found * width;
        double lists = 2 * tokens + 2 * found;
        to.add(Work.elements("embeddingBackward", 1, floats(width) + sums + lists, sums));
        to.add(Work.elements("add", sequences, 2 * floats(width), floats(width)));
    }

    /** The table's two gradients together, norms, AdamW with the rounded weights. */
    private void update(List<Work> to) {
        double table = (double) FLOAT * vocabulary * width;
        to.add(Work.elements("add", 1, 2 * table, table));
        to.add(Work.elements("zero", 1, 0, table));
        List<Double> tensors = tensors();
        double elements = tensors.stream().mapToDouble(each -> each).sum();
        double parameters = FLOAT * elements;
        double squared = (double) SQUARED_BYTES * tensors.size();
        to.add(Work.elements("copyWords", 1, squared, squared));
        double sums =
                8 * tensors.stream().mapToDouble(each -> Math.ceil(each / RUN_ELEMENTS)).sum();
        to.add(Work.elements("squaresOfRuns", 1, parameters + squared, sums));
        to.add(Work.elements("sumsOfRuns", 1, sums + squared, 8.0 * tensors.size()));
        double matrices = 12.0 * layers * width * width + (double) vocabulary * width;
        double rounded = bf16 ? HALF * matrices : 0;
        double updated = (double) UPDATED_BYTES * tensors.size();
        to.add(Work.elements("adamWOfRuns", 1, 4 * parameters + updated, 4 * parameters + rounded));
    }
}
