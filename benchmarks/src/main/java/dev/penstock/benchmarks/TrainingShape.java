package dev.penstock.benchmarks;

import dev.penstock.runtime.model.shape.ModelShape;

/** A model to measure. */
record TrainingShape(String name, int layers, int width, int heads, int context, int vocabulary) {
    long flopsPerToken() {
        return ModelShape.gpt2(vocabulary, context, width, layers, heads, true).flopsPerToken();
    }

    /** Sequences of a step in one stage, the same number with which the goals were measured. */
    int sequences() {
        return Math.max(1, 1_024 / context);
    }
}
