package dev.penstock.runtime.model.layers;

import static java.util.Objects.requireNonNull;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Epilogue;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.activations.HeadActivations;
import dev.penstock.runtime.model.activations.Workspace;
import dev.penstock.runtime.model.mesh.MeshProduct;
import dev.penstock.runtime.model.parameters.GroupView;
import dev.penstock.runtime.model.parameters.Parameter;
import dev.penstock.runtime.model.parameters.StageParameters;
import dev.penstock.runtime.model.parameters.TransformParameters;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.BlockDesign;
import dev.penstock.runtime.model.shape.HeadChunk;
import dev.penstock.runtime.model.shape.ShardShape;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Final norm, a layer of the head's own where there is one, logits and cross-entropy. Logits exist
 * for one {@link HeadChunk} at a time: the backward computes them, their gradient, and both
 * products of it chunk by chunk. A shard has the logits of its part of the vocabulary.
 */
public final class LossHead {
    private static final int LINE_FLOATS = 16;

    private final Compute compute;
    private final Kernels kernels;
    private final Norm norm;
    private final @Nullable HeadTransform transform;
    private final @Nullable Parameter bias;
    private final Parameter matrix;
    private final @Nullable GroupView matrixGradient;
    private final Tensor logits;
    private final @Nullable MeshProduct mesh;

    /**
     * @param logits scratch of {@link #logitsScratch}
     */
    LossHead(Compute compute, BlockDesign design, StageParameters.Head parameters, Tensor logits) {
        this.compute = compute;
        kernels = compute.kernels();
        mesh = compute.shards().product(false);
        norm = Norm.of(compute, design.norm(), parameters.norm());
        TransformParameters own = parameters.transform();
        transform = own == null ? null : new HeadTransform(compute, design, own);
        bias = own == null ? null : own.bias();
        matrix = parameters.matrix();
        matrixGradient = parameters.matrixGradient();
        this.logits = logits;
    }

    /**
     * Returns how many rows have logits at the same time: blocks of the grid, as many as are
     * useful. All shards, with a row of the vocabulary more or less, use the same number, because
     * they exchange data once per chunk.
     */
    public static int logitsRows(ShardShape shape, BatchShape batch) {
        long fitting =
                batch.logits().bytes()
                        / Float.BYTES
                        / Math.ceilDiv(shape.model().outputs(), shape.parts());
        int most = (int) Math.min(batch.largestRows(), fitting / batch.grid() * batch.grid());
        return Math.max(batch.grid(), most);
    }

    /**
     * Allocates room for the logits of {@code rows} tokens, with rows starting on 64-byte lines.
     */
    public static Tensor logitsScratch(DeviceScope scope, ShardShape shape, int rows) {
        if (shape.mesh().isThere()) { // shards send each other whole tensors, without gaps
            return scope.tensor("logits", DType.F32, rows, shape.outputs());
        }
        int stride = (shape.outputs() + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
        return scope.tensor("logits", DType.F32, rows, stride).columns(0, shape.outputs());
    }

    void normalise(Tensor x, HeadActivations a) {
        norm.forward(x, a.normed(), a.moments());
        if (transform != null) {
            transform.forward(a.normed(), requireNonNull(a.transform()));
        }
    }

    /**
     * Returns the logits of some rows of {@link HeadActivations#ofLogits}, valid until the next
     * call.
     */
    public Tensor logits(Tensor normed) {
        Tensor chunk = logits.rows(0, normed.rows());
        if (mesh != null) {
            mesh.backwardInput(normed, matrix.factor(), chunk);
        } else {
            kernels.gemm(compute.multiply(), false, normed, true, matrix.factor(), chunk, false);
        }
        if (bias != null) {
            kernels.addBias(chunk, bias.weight());
        }
        return chunk;
    }

    /** Returns the logits from which losses are computed: in bf16 where products can write it. */
    private Tensor lossLogits(Tensor normed) {
        if (bias != null || !compute.joins() || !compute.shards().areOne()) {
            return logits(normed);
        }
        Tensor chunk = LossLedger.inRowsOf(logits.rows(0, normed.rows()));
        kernels.gemmThen(normed, true, matrix.factor(), new Epilogue.Rounding(), chunk);
        return chunk;
    }

    /** Computes the losses of all tokens of a unit, without gradients. */
    public void evaluate(
            HeadActivations a, LossLedger ledger, int microBatch, List<HeadChunk> chunks) {
        Tensor allNormed = compute.shards().gather(a.ofLogits());
        for (HeadChunk chunk : chunks) {
            Tensor chunkLogits = lossLogits(chunk.of(allNormed));
            var _ = ledger.crossEntropy(compute, chunkLogits, microBatch, chunk, 0);
        }
    }

    /**
     * Computes losses and gradients of a unit.
     *
     * @param x input of the final norm
     * @param gradientScale 1 / tokens of the step
     * @param dStream receives the gradient of {@code x}
     */
    public void backward(
            Tensor x,
            HeadActivations a,
            LossLedger ledger,
            int microBatch,
            List<HeadChunk> chunks,
            float gradientScale,
            Tensor dStream,
            Workspace work,
            TokenBlocks blocks) {
        Tensor allNormed = compute.shards().gather(a.ofLogits());
        for (HeadChunk chunk : chunks) {
            Tensor normed = chunk.of(allNormed);
            Tensor dChunk = chunk.of(work.dModel());
            Tensor dLogits =
                    ledger.crossEntropy(
                            compute, lossLogits(normed), microBatch, chunk, gradientScale);
            if (mesh != null) {
                mesh.multiply(dLogits, matrix.factor(), dChunk);
            } else {
                kernels.gemm(
                        compute.multiply(), false, dLogits, false, matrix.factor(), dChunk, false);
            }
            if (matrixGradient != null && mesh != null) {
                mesh.backwardWeight(dLogits, normed, matrixGradient.tensor(), chunk.blocks());
            } else if (matrixGradient != null) {
                kernels.weightGradient(
                        compute.multiply(),
                        dLogits,
                        normed,
                        matrixGradient.tensor(),
                        chunk.blocks());
            }
            if (bias != null && bias.isTrained()) {
                kernels.biasGradient(dLogits, bias.gradient(), chunk.blocks());
            }
        }
        Tensor dNormed = compute.shards().sum(work.dModel());
        if (transform != null) {
            transform.backward(
                    a.normed(), requireNonNull(a.transform()), dNormed, dStream, work, blocks);
        }
        kernels.zero(dStream);
        norm.backward(dNormed, x, a.moments(), dStream, blocks);
    }
}
