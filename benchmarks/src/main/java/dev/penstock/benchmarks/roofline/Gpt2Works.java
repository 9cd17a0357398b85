package dev.penstock.benchmarks.roofline;

import dev.penstock.benchmarks.roofline.Work.Kind;
import java.util.List;

/** The kernels of GPT-2's blocks: layer norms, biases, GELU. */
final class Gpt2Works extends StepWorks {
    private static final int TOGETHER_COLUMNS = 1_024;
    private static final int TOGETHER_BLOCKS = 64;

    Gpt2Works(ModelStep step) {
        super(step);
    }

    @Override
    void blockForward(List<Work> to) {
        attentionForward(to);
        mlpForward(to);
    }

    @Override
    void blockBackward(List<Work> to) {
        mlpBackward(to);
        attentionBackward(to);
    }

    @Override
    void lastNormBackward(List<Work> to) {
        normBackward(to, false);
    }

    @Override
    List<Double> matrices() {
        double d = width;
        return List.of(3 * d * d, d * d, 4 * d * d, 4 * d * d);
    }

    @Override
    List<Double> vectors() {
        double d = width;
        return List.of(d, d, 3 * d, d, d, d, 4 * d, d);
    }

    @Override
    List<Double> lastNorm() {
        return List.of((double) width, (double) width);
    }

    /** Biases of the four products and of both norms. */
    @Override
    List<Double> watched() {
        double d = width;
        return List.of(d, 3 * d, d, d, 4 * d, d);
    }

    @Override
    void norm(List<Work> to) {
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

    private void addBiasAndResidual(List<Work> to) {
        double read = 2 * floats(width) + FLOAT * width;
        to.add(Work.elements("addBiasAndResidual", 1, read, floats(width)));
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
        if (joined) {
            joinedBackward(to, width, width);
            double both = floats(width) + halves(width);
            to.add(Work.elements("attentionDeltaOfHalves", 1, both, floats(heads)));
        } else {
            productsBackward(to, width, width);
            double written = floats(heads) + (bf16 ? halves(width) : 0);
            to.add(Work.elements("attentionDelta", 1, 2 * floats(width), written));
        }
        attentionGradients(to, joined);
        if (joined) {
            biasGradientOfHalves(to, 3L * width);
            joinedBackward(to, width, 3.0 * width);
        } else {
            biasGradient(to, 3L * width);
            productsBackward(to, width, 3.0 * width);
        }
        normBackward(to, joined);
    }
}
