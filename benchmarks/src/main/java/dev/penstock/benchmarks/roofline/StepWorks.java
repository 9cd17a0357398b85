package dev.penstock.benchmarks.roofline;

import dev.penstock.benchmarks.roofline.Work.Kind;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The kernels of a training step: what all families share, and what each has in its blocks. */
abstract class StepWorks {
    static final int FLOAT = 4;
    static final int HALF = 2;

    /** Of what kernels read about each tensor that they take together. */
    private static final int WATCHED_BYTES = 32;

    private static final int SQUARED_BYTES = 24;
    private static final int UPDATED_BYTES = 60;
    private static final int RUN_ELEMENTS = 16_384;

    /** Where a side of this length is no multiple of 8, a product is done in two parts. */
    private static final int LONG_SIDE = 1_024;

    /** Columns of a head. */
    private static final int HEAD = 64;

    private final ModelStep step;
    private final ModelStep.Model model;
    final int layers;
    final int width;
    final int heads;
    final int context;
    final int sequences;
    final boolean bf16;
    final boolean joined;

    /** Columns of all queries, and of all keys. */
    final int queries;

    final int keys;

    StepWorks(ModelStep step) {
        this.step = step;
        model = step.model();
        layers = model.layers();
        width = model.width();
        heads = model.heads();
        context = model.context();
        sequences = step.sequences();
        bf16 = step.bf16();
        joined = step.joined();
        queries = HEAD * heads;
        keys = HEAD * model.keyHeads();
    }

    static StepWorks of(ModelStep step) {
        return switch (step.model().family()) {
            case GPT2 -> new Gpt2Works(step);
            case LLAMA -> new LlamaWorks(step);
        };
    }

    abstract void norm(List<Work> to);

    abstract void lastNormBackward(List<Work> to);

    abstract void blockForward(List<Work> to);

    abstract void blockBackward(List<Work> to);

    /** Elements of each matrix of a block. */
    abstract List<Double> matrices();

    /** Elements of each bias and gain of a block. */
    abstract List<Double> vectors();

    abstract List<Double> lastNorm();

    /** Elements of the gradients of a block that are looked through for NaN and infinities. */
    abstract List<Double> watched();

    /** Returns the work of each kernel, the work of a name together. */
    List<Work> all() {
        List<Work> all = new ArrayList<>();
        for (int microBatch = 0; microBatch < step.microBatches(); microBatch++) {
            forward(all);
            backward(all);
        }
        update(all);
        Map<String, Work> byName = new LinkedHashMap<>();
        all.forEach(each -> byName.merge(each.kernel() + each.kind(), each, Work::plus));
        return List.copyOf(byName.values());
    }

    private void forward(List<Work> to) {
        embedding(to);
        for (int layer = 0; layer < layers; layer++) {
            blockForward(to);
        }
        norm(to);
    }

    private void backward(List<Work> to) {
        head(to);
        lastNormBackward(to);
        for (int layer = 0; layer < layers; layer++) {
            blockBackward(to);
            to.add(Work.elements("findNonFinite", 1, floats(width), 0));
        }
        embeddingBackward(to);
        double tensors = (double) layers * watched().size() + 1;
        double columns = layers * sum(watched()) + width;
        double read = WATCHED_BYTES * tensors + FLOAT * columns;
        to.add(Work.elements("findNonFiniteOfAll", 1, read, 0));
    }

    private static double sum(List<Double> elements) {
        return elements.stream().mapToDouble(each -> each).sum();
    }

    private double table() {
        return (double) model.vocabulary() * width;
    }

    /** Elements of each weight and bias, a tied table of tokens once. */
    private List<Double> tensors() {
        List<Double> all = new ArrayList<>(lastNorm());
        all.addAll(Collections.nCopies(model.tied() ? 1 : 2, table()));
        if (model.learnsPositions()) {
            all.add((double) context * width);
        }
        for (int layer = 0; layer < layers; layer++) {
            all.addAll(matrices());
            all.addAll(vectors());
        }
        return all;
    }

    /** Rows of a micro-batch. */
    double rows() {
        return (double) sequences * context;
    }

    private int blocksOfSequence() {
        return Math.ceilDiv(context, step.block());
    }

    double blocks() {
        return (double) sequences * blocksOfSequence();
    }

    /** Bytes of a tensor of F32 of all rows. */
    double floats(double columns) {
        return FLOAT * rows() * columns;
    }

    double halves(double columns) {
        return HALF * rows() * columns;
    }

    /** Bytes of what products read. */
    double factors(double columns) {
        return bf16 ? halves(columns) : floats(columns);
    }

    /** How many different tokens a micro-batch is likely to have, if each is as likely. */
    private double distinctTokens() {
        double vocabulary = model.vocabulary();
        return vocabulary * (1 - Math.pow(1 - 1 / vocabulary, rows()));
    }

    private void embedding(List<Work> to) {
        double table = FLOAT * distinctTokens() * width;
        to.add(Work.elements("embedding", 1, FLOAT * rows() + table, floats(width)));
        if (model.learnsPositions()) {
            to.add(Work.elements("add", sequences, 2 * floats(width), floats(width)));
        }
    }

    void addInOrder(List<Work> to, long columns) {
        double sums = FLOAT * columns;
        to.add(Work.elements("addInOrder", 1, sums * blocks() + sums, sums));
    }

    Work product(double m, double n, double k, boolean adds) {
        double factor = bf16 ? HALF : FLOAT;
        double result = FLOAT * m * n;
        double read = factor * (m * k + k * n) + (adds ? result : 0);
        return new Work("product", Kind.PRODUCTS, 1, read, result, 2 * m * n * k);
    }

    void attention(List<Work> to) {
        to.add(
                new Work(
                        bf16 ? "attentionOfKeptHalves64" : "attention64",
                        Kind.ATTENTION,
                        1,
                        factors(queries + 2 * keys),
                        floats(queries) + floats(heads),
                        4 * scores(64)));
        if (bf16) {
            narrow(to, queries);
        }
    }

    /**
     * The gradients of queries, keys and values.
     *
     * @param rounded whether they are
     */
    void attentionGradients(List<Work> to, boolean rounded) {
        double read = factors(2 * queries + 2 * keys) + 2 * floats(heads);
        int bytes = rounded ? HALF : FLOAT;
        to.add(
                new Work(
                        nameOfGradient(rounded, "KeyValue", "keyValue"),
                        Kind.ATTENTION_BACKWARD,
                        1,
                        read,
                        bytes * rows() * 2 * keys,
                        8 * scores(16)));
        to.add(
                new Work(
                        nameOfGradient(rounded, "Query", "query"),
                        Kind.ATTENTION_BACKWARD,
                        1,
                        read,
                        bytes * rows() * queries,
                        6 * scores(16)));
    }

    private String nameOfGradient(boolean rounded, String inside, String first) {
        if (rounded) {
            return "rounded" + inside + "GradientOfKeptHalves64";
        }
        return first + (bf16 ? "GradientOfKeptHalves64" : "Gradient64");
    }

    /** Rounds a tensor of all rows. */
    void narrow(List<Work> to, double columns) {
        to.add(Work.elements("narrow", 1, floats(columns), halves(columns)));
    }

    /**
     * Products of a query's column and a key's, of all heads: rows of queries meet keys by tiles,
     * the last of which is masked in part.
     *
     * @param tile keys of a tile in bf16, where each head has its own rows, by 16
     */
    private double scores(int tile) {
        return bf16 ? scores(context, 16, 1, tile) * heads : scores32() * model.keyHeads();
    }

    /** In F32, heads that share keys share rows, by 32. */
    private double scores32() {
        int group = heads / model.keyHeads();
        return scores(context * group, 32, group, 32);
    }

    /** Of some rows of which so many are of one query. */
    private double scores(int rows, int together, int group, int tile) {
        double seen = 0;
        for (int first = 0; first < rows; first += together) {
            int last = Math.min(first + together, rows) - 1;
            seen += together * Math.ceil((last / group + 1) / (double) tile) * tile;
        }
        return seen * sequences * HEAD;
    }

    /** The rows of each chunk that has its logits at the same time: whole sequences if they fit. */
    private List<Integer> chunks() {
        int all = sequences * context;
        int block = step.block();
        int fitting = (int) (step.logitsBytes() / FLOAT / model.vocabulary() / block * block);
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
        int vocabulary = model.vocabulary();
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

    /** The gradients of a product's input [n, in] and of its weights [in, out]. */
    void productsBackward(List<Work> to, double in, double out) {
        to.add(product(rows(), in, out, false));
        to.add(product(in, out, rows(), true));
    }

    private void embeddingBackward(List<Work> to) {
        double counts = (double) FLOAT * model.vocabulary();
        double tokens = floats(1);
        double found = FLOAT * distinctTokens();
        to.add(Work.elements("clearCounts", 1, 0, counts));
        to.add(Work.elements("countTokens", 1, tokens + found, found));
        to.add(Work.elements("startLists", 1, counts, 2 * counts));
        to.add(Work.elements("listPositions", 1, tokens + found, found + tokens));
        double sums = found * width;
        double lists = 2 * tokens + 2 * found;
        to.add(Work.elements("embeddingBackward", 1, floats(width) + sums + lists, sums));
        if (model.learnsPositions()) {
            to.add(Work.elements("add", sequences, 2 * floats(width), floats(width)));
        }
    }

    /** A tied table's two gradients together, norms, AdamW with the rounded weights. */
    private void update(List<Work> to) {
        if (model.tied()) {
            double table = FLOAT * table();
            to.add(Work.elements("add", 1, 2 * table, table));
            to.add(Work.elements("zero", 1, 0, table));
        }
        List<Double> tensors = tensors();
        double parameters = FLOAT * sum(tensors);
        double squared = (double) SQUARED_BYTES * tensors.size();
        to.add(Work.elements("copyWords", 1, squared, squared));
        double sums =
                8 * tensors.stream().mapToDouble(each -> Math.ceil(each / RUN_ELEMENTS)).sum();
        to.add(Work.elements("squaresOfRuns", 1, parameters + squared, sums));
        to.add(Work.elements("sumsOfRuns", 1, sums + squared, 8.0 * tensors.size()));
        double matrices = layers * sum(matrices()) + table();
        double rounded = bf16 ? HALF * matrices : 0;
        double updated = (double) UPDATED_BYTES * tensors.size();
        to.add(Work.elements("adamWOfRuns", 1, 4 * parameters + updated, 4 * parameters + rounded));
    }
}
