package dev.penstock.benchmarks.roofline;

import java.util.List;

/**
 * The kernels of the Llama family's blocks: RMS norms, rotary positions, SwiGLU, queries that share
 * keys. No linear layer has a bias, so no product does what follows it but that of the logits,
 * which are rounded.
 */
final class LlamaWorks extends StepWorks {
    private final int hidden;

    /** Columns of queries, keys and values side by side. */
    private final int projected = queries + 2 * keys;

    LlamaWorks(ModelStep step) {
        super(step);
        hidden = step.model().hidden();
    }

    @Override
    void norm(List<Work> to) {
        double read = floats(width) + FLOAT * width;
        String kernel = bf16 ? "rmsNormRounded" : "rmsNorm";
        to.add(Work.elements(kernel, 1, read, factors(width) + floats(1)));
        String watch = bf16 ? "findNonFiniteHalves" : "findNonFinite";
        to.add(Work.elements(watch, 1, factors(width), 0));
    }

    @Override
    void lastNormBackward(List<Work> to) {
        normBackward(to);
    }

    private void normBackward(List<Work> to) {
        double read = 3 * floats(width) + floats(1) + FLOAT * width;
        to.add(Work.elements("rmsNormBackwardInput", 1, read, floats(width)));
        read = 2 * floats(width) + floats(1);
        double partial = FLOAT * width * blocks();
        to.add(Work.elements("rmsNormBackwardWeightOfBlocks", 1, read, partial));
        addInOrder(to, width);
    }

    @Override
    void blockForward(List<Work> to) {
        norm(to);
        to.add(product(rows(), projected, width, false));
        rotate(to);
        if (bf16) {
            narrow(to, projected);
        }
        attention(to);
        to.add(product(rows(), width, queries, false));
        addResidual(to);
        norm(to);
        to.add(product(rows(), 2.0 * hidden, width, false));
        String kernel = bf16 ? "swiGluRounded" : "swiGlu";
        to.add(Work.elements(kernel, 1, floats(2 * hidden), factors(hidden)));
        to.add(product(rows(), width, hidden, false));
        addResidual(to);
    }

    private void addResidual(List<Work> to) {
        to.add(Work.elements("add", 1, 2 * floats(width), floats(width)));
    }

    /** Queries and keys in F32, in place, by the turns of each place. */
    private void rotate(List<Work> to) {
        double turned = floats(queries + keys);
        double turns = (double) FLOAT * context * queries / heads;
        to.add(Work.elements("rotate", 1, turned + turns, turned));
    }

    @Override
    void blockBackward(List<Work> to) {
        roundedGradient(to, width);
        productsBackward(to, hidden, width);
        String kernel = bf16 ? "swiGluBackwardRounded" : "swiGluBackward";
        to.add(Work.elements(kernel, 1, floats(3 * hidden), factors(2 * hidden)));
        productsBackward(to, width, 2 * hidden);
        normBackward(to);
        roundedGradient(to, width);
        productsBackward(to, queries, width);
        double delta = floats(heads) + (bf16 ? halves(queries) : 0);
        to.add(Work.elements("attentionDelta", 1, 2 * floats(queries), delta));
        attentionGradients(to, false);
        rotate(to);
        roundedGradient(to, projected);
        productsBackward(to, width, projected);
        normBackward(to);
    }

    /** The gradient of a product's output as products read it. */
    private void roundedGradient(List<Work> to, int columns) {
        if (bf16) {
            narrow(to, columns);
        }
    }

    @Override
    List<Double> matrices() {
        double d = width;
        return List.of(d * projected, d * queries, d * 2 * hidden, d * hidden);
    }

    @Override
    List<Double> vectors() {
        return List.of((double) width, (double) width);
    }

    @Override
    List<Double> lastNorm() {
        return List.of((double) width);
    }

    /** The gains of both norms. */
    @Override
    List<Double> watched() {
        return vectors();
    }
}
