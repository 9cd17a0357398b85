package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.activations.HeadMoments;
import dev.penstock.runtime.model.parameters.HeadNormParameters;
import dev.penstock.runtime.model.parameters.Parameter;
import dev.penstock.runtime.model.shape.ShardShape;

/**
 * Norms of every head of queries and of keys, each by its own root mean square, before they are
 * turned. Rows are those of a unit or of one of its sequences.
 */
final class HeadNorms {
    private final Compute compute;
    private final Kernels kernels;
    private final Parameter queryGain;
    private final Parameter keyGain;
    private final int queries;
    private final int keys;
    private final double epsilon;

    HeadNorms(Compute compute, ShardShape shape, HeadNormParameters parameters) {
        this.compute = compute;
        kernels = compute.kernels();
        queryGain = parameters.queries();
        keyGain = parameters.keys();
        queries = shape.headColumns();
        keys = shape.keyColumns();
        epsilon = shape.model().block().norm().epsilon();
    }

    /** Normalises rows in place and keeps what the backward needs. */
    void forward(Tensor qkv, HeadMoments kept) {
        kernels.copy(qkv.columns(0, queries + keys), kept.raw());
        kernels.rmsNorm(
                queriesOf(kept.raw()), queryGain.weight(), queriesOf(qkv), kept.queries(), epsilon);
        kernels.rmsNorm(keysOf(kept.raw()), keyGain.weight(), keysOf(qkv), kept.keys(), epsilon);
    }

    /** Replaces the gradients of a unit's rows by those of the rows before the norm. */
    void backward(Tensor dQkv, HeadMoments kept, TokenBlocks blocks) {
        backward(queriesOf(dQkv), queriesOf(kept.raw()), queryGain, kept.queries(), blocks);
        backward(keysOf(dQkv), keysOf(kept.raw()), keyGain, kept.keys(), blocks);
    }

    private void backward(Tensor dy, Tensor x, Parameter gain, Tensor kept, TokenBlocks blocks) {
        if (gain.isTrained()) {
            kernels.rmsNormBackwardWeight(dy, x, kept, gain.gradient(), blocks);
            compute.guard().checkGradient(gain, "gradient of " + gain.name() + " (backward)");
        }
        kernels.rmsNormBackwardInput(dy, x, gain.weight(), kept, dy, false);
    }

    private Tensor queriesOf(Tensor rows) {
        return rows.columns(0, queries);
    }

    private Tensor keysOf(Tensor rows) {
        return rows.columns(queries, keys);
    }
}
