package dev.penstock.runtime.model;

import static java.util.Objects.requireNonNull;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import org.jspecify.annotations.Nullable;

/**
 * Final norm, logits and cross-entropy. Logits exist for one block of the reduction grid at a time;
 * the backward makes them, their gradient, and both products of it block by block, in the order of
 * {@link TokenBlocks}.
 */
final class LossHead {
    private static final int LINE_FLOATS = 16;

    private final Compute compute;
    private final Kernels kernels;
    private final LayerNorm norm;
    private final Parameter matrix;
    private final @Nullable Tensor matrixGradient;
    private final Tensor logits;

    /**
     * @param logits scratch of {@link #logitsScratch}
     */
    LossHead(Compute compute, StageParameters.Head parameters, Tensor logits) {
        this.compute = compute;
        kernels = compute.kernels();
        norm = new LayerNorm(compute, parameters.norm());
        matrix = parameters.matrix();
        matrixGradient = parameters.matrixGradient();
        this.logits = logits;
    }

    /** Room for the logits of {@code rows} tokens, rows starting on 64-byte lines. */
    static Tensor logitsScratch(DeviceScope scope, GptShape shape, int rows) {
        int stride = (shape.vocabulary() + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
        return scope.tensor("logits", DType.F32, rows, stride).columns(0, shape.vocabulary());
    }

    void normalise(Tensor x, HeadActivations a) {
        norm.forward(x, a.normed(), a.moments());
    }

    /** The logits of some normalised rows, valid until the next call. */
    Tensor logits(Tensor normed) {
        Tensor block = logits.rows(0, normed.rows());
        kernels.gemm(compute.multiply(), false, normed, true, matrix.factor(), block, false);
        return block;
    }

    /** Losses of all tokens of a unit, without gradients. */
    void evaluate(HeadActivations a, LossLedger ledger, int microBatch, TokenBlocks blocks) {
        for (int i = 0; i < blocks.count(); i++) {
            Tensor block = logits(a.normed().rows(blocks.firstRow(i), blocks.rowsOf(i)));
            ledger.crossEntropy(compute, block, microBatch, blocks, i, 0);
        }
    }

    /**
     * Losses and gradients of a unit.
     *
     * @param x input of the final norm
     * @param gradientScale 1 / tokens of the step
     * @param dStream receives the gradient of {@code x}
     */
    void backward(
            Tensor x,
            HeadActivations a,
            LossLedger ledger,
            int microBatch,
            float gradientScale,
            Tensor dStream,
            Workspace work,
            TokenBlocks blocks) {
        Tensor dMatrix = requireNonNull(matrixGradient);
        for (int i = 0; i < blocks.count(); i++) {
            Tensor normed = a.normed().rows(blocks.firstRow(i), blocks.rowsOf(i));
            Tensor dNormed = work.dModel().rows(blocks.firstRow(i), blocks.rowsOf(i));
            Tensor block = logits(normed);
            ledger.crossEntropy(compute, block, microBatch, blocks, i, gradientScale);
            kernels.gemm(compute.multiply(), false, block, false, matrix.factor(), dNormed, false);
            kernels.gemm(compute.multiply(), true, block, false, normed, dMatrix, true);
        }
        kernels.zero(dStream);
        norm.backward(work.dModel(), x, a.moments(), dStream, blocks);
    }
}
