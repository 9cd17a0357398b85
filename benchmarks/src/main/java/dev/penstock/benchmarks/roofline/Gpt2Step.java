package dev.penstock.benchmarks.roofline;

import dev.penstock.benchmarks.roofline.Work.Kind;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The kernels of a training step of GPT-2's shape: one stage on one GPU, one micro-batch, products
 * by cuBLAS, attention's heads of up to 64 columns. Letters below: n rows, d width, V vocabulary.
 *
 * @param sequences of the step
 */
public record Gpt2Step(
        int layers,
        int width,
        int heads,
        int context,
        int vocabulary,
        int sequences,
        boolean bf16) {
    private static final int FLOAT = 4;
    private static final int HALF = 2;

    /** Of device.reduction-block. */
    private static final int GRID = 128;

    private static final long LOGITS_BYTES = 512L << 20;

    /** Where a side of this length is no multiple of 8, a product is done in two parts. */
    private static final int LONG_SIDE = 1_024;

    private static final int TOGETHER_COLUMNS = 1_024;
    private static final int TOGETHER_BLOCKS = 64;

    /** Returns the work of each kernel, the work of a name together. */
    public List<Work> works() {
        List<Work> all = new ArrayList<>();
        embedding(all);
        for (int layer = 0; layer < layers; layer++) {
            attentionForward(all);
            mlpForward(all);
        }
        norm(all);
        head(all);
        normBackward(all);
        for (int layer = 0; layer < layers; layer++) {
            mlpBackward(all);
            attentionBackward(all);
        }
        embeddingBackward(all);
        update(all);
        Map<String, Work> byName = new LinkedHashMap<>();
        all.forEach(each -> byName.merge(each.kernel() + each.kind(), each, Work::plus));
        return List.copyOf(byName.values());
    }

    /** Weights and biases, the table of tokens once. */
    public double parameters() {
        double ofLayer = 12.0 * width * width + 13.0 * width;
        return layers * ofLayer + 2.0 * width + (double) (vocabulary + context) * width;
    }

    private double rows() {
        return (double) sequences * context;
    }

    private double blocks() {
        return sequences * Math.ceil((double) context / GRID);
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

    /** How many different tokens are likely to be among those of a step, if each is as likely. */
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

    private void normBackward(List<Work> to) {
        double partial = 2.0 * FLOAT * width * blocks();
        double gain = FLOAT * width;
        double moments = 2 * floats(1);
        if (width <= TOGETHER_COLUMNS && blocks() >= TOGETHER_BLOCKS) {
            String kernel = width <= 768 ? "layerNormBackward768" : "layerNormBackward1024";
            double read = 3 * floats(width) + moments + gain;
            to.add(Work.elements(kernel, 1, read, floats(width) + partial));
        } else {
            double read = 3 * floats(width) + moments + gain;
            to.add(Work.elements("layerNormBackwardInput", 1, read, floats(width)));
            read = 2 * floats(width) + moments;
            to.add(Work.elements("layerNormBackwardWeightOfBlocks", 1, read, partial));
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

    private void attentionForward(List<Work> to) {
        norm(to);
        to.add(product(rows(), 3.0 * width, width, false));
        double bias = 3.0 * FLOAT * width;
        double result = bf16 ? halves(3 * width) : floats(3 * width);
        to.add(
                Work.elements(
                        bf16 ? "addBiasRounded" : "addBias", 1, floats(3 * width) + bias, result));
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
        to.add(product(rows(), width, width, false));
        addBiasAndResidual(to);
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

    /** Chunk by chunk of rows: logits, losses with their gradients, and both gradients. */
    private void head(List<Work> to) {
        int all = (int) rows();
        int fitting = (int) (LOGITS_BYTES / FLOAT / vocabulary / GRID * GRID);
        int most = Math.max(GRID, Math.min(all, fitting));
        for (int first = 0; first < all; first += most) {
            int rows = Math.min(most, all - first);
            boolean odd = bf16 && vocabulary >= LONG_SIDE && vocabulary % 8 != 0;
            int rest = odd ? vocabulary % 8 : 0;
            int even = vocabulary - rest;
            to.add(ofHead(product(rows, even, width, false)));
            to.add(ofHead(product(rows, width, even, false)));
            to.add(ofHead(product(even, width, rows, true)));
            if (odd) {
                to.add(ofHead(product(rows, width, rest, true)));
                double left = HALF * ((double) rows * width + (double) rest * width);
                double column = FLOAT * (double) rows * rest;
                to.add(Work.elements("dotsOfHalves", 1, left, column));
                double row = FLOAT * (double) rest * width;
                double right = HALF * ((double) rows * width + (double) rows * rest);
                to.add(Work.elements("columnDotsOfHalves", 1, right + row, row));
            }
        }
        double logits = floats(vocabulary);
        int runs = sequences;
        double targets = floats(1);
        if (bf16) {
            double gradients = halves(vocabulary);
            to.add(
                    Work.elements(
                            "crossEntropyOfRowsRounded",
                            runs,
                            logits + targets,
                            gradients + floats(1)));
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

    /** The gradients of a product's input [n, in] and of its weights [in, out]. */
    private void productsBackward(List<Work> to, double in, double out) {
        to.add(product(rows(), in, out, false));
        to.add(product(in, out, rows(), true));
    }

    private void mlpBackward(List<Work> to) {
        biasGradient(to, width);
        productsBackward(to, 4.0 * width, width);
        int hidden = 4 * width;
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
        normBackward(to);
    }

    private void attentionBackward(List<Work> to) {
        biasGradient(to, width);
        productsBackward(to, width, width);
        double rounded = bf16 ? halves(width) : 0;
        double known = 2 * floats(heads);
        to.add(Work.elements("attentionDelta", 1, 2 * floats(width), floats(heads) + rounded));
        double read = factors(3 * width) + factors(width) + known;
        int tile = bf16 ? 16 : 32;
        to.add(
                new Work(
                        bf16 ? "keyValueGradientOfKeptHalves64" : "keyValueGradient64",
                        Kind.ATTENTION_BACKWARD,
                        1,
                        read,
                        2 * floats(width),
                        8 * scores(tile)));
        to.add(
                new Work(
                        bf16 ? "queryGradientOfKeptHalves64" : "queryGradient64",
                        Kind.ATTENTION_BACKWARD,
                        1,
                        read,
                        floats(width),
                        6 * scores(tile)));
        biasGradient(to, 3L * width);
        productsBackward(to, width, 3.0 * width);
        normBackward(to);
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
        double parameters = FLOAT * parameters();
        double tensors = 12.0 * layers + 4;
        to.add(Work.elements("copyWords", 1, 24 * tensors, 24 * tensors));
        double runs = 8 * Math.ceil(parameters() / 16_384);
        to.add(Work.elements("squaresOfRuns", 1, parameters, runs));
        to.add(Work.elements("sumsOfRuns", 1, runs, 8 * tensors));
        double matrices = 12.0 * layers * width * width + (double) vocabulary * width;
        double rounded = bf16 ? HALF * matrices : 0;
        to.add(Work.elements("adamWOfRuns", 1, 4 * parameters, 4 * parameters + rounded));
    }
}
