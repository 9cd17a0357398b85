package dev.penstock.runtime.model.layers;

import static java.util.Objects.requireNonNull;

import dev.penstock.cuda.device.Epilogue;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.activations.HeadMoments;
import dev.penstock.runtime.model.activations.LayerActivations;
import dev.penstock.runtime.model.activations.Workspace;
import dev.penstock.runtime.model.parameters.LayerParameters;
import dev.penstock.runtime.model.shape.MicroBatchRows;
import dev.penstock.runtime.model.shape.ShardShape;
import org.jspecify.annotations.Nullable;

/**
 * The first half of a transformer block over a token slice: {@code middle = x +
 * proj(attention(norm(x)))}.
 *
 * <p>Queries, keys and values of this shard's heads lie in a tensor of the whole micro-batch: a
 * slice adds its rows and attends to all rows before them. In the backward, slices come in reverse
 * order: each finds in the micro-batch's gradient what later slices added for its keys and values.
 * Queries and keys lie there as attention uses them: normalised and turned where a model does so.
 */
final class AttentionBlock {
    private final Compute compute;
    private final Kernels kernels;
    private final Norm norm;
    private final Residual residual;
    private final boolean trained;
    private final boolean normTrained;
    private final ColumnLinear queryKeyValue;
    private final RowLinear output;
    private final Attention attention;
    private final @Nullable HeadNorms headNorms;
    private final @Nullable HeadTurns turns;
    private final int turning;

    /** Whether products do what follows them, forward and backward. */
    private final boolean joins;

    /** Whether the gradient of the norm's output is rounded. */
    private final boolean roundsNorm;

    AttentionBlock(
            Compute compute,
            ShardShape shape,
            Attention attention,
            @Nullable HeadTurns turns,
            LayerParameters parameters) {
        this.compute = compute;
        kernels = compute.kernels();
        norm = Norm.of(compute, shape.model().block().norm(), parameters.norm1());
        residual = Residual.of(kernels, shape.model().block());
        trained = parameters.trainsAttention();
        normTrained = parameters.norm1().gain().isTrained();
        headNorms =
                parameters.headNorms() == null
                        ? null
                        : new HeadNorms(compute, shape, parameters.headNorms());
        this.turns = turns;
        turning = shape.headColumns() + shape.keyColumns();
        queryKeyValue = new ColumnLinear(compute, parameters.queryKeyValue());
        output = new RowLinear(compute, parameters.attentionOutput());
        this.attention = attention;
        joins = headNorms == null && turns == null && queryKeyValue.joins() && output.joins();
        roundsNorm = queryKeyValue.joins() && norm.takesRounded() && !residual.ofNorm();
    }

    /**
     * @param qkv of the micro-batch; the unit's rows are written
     */
    void forward(Tensor x, LayerActivations a, Tensor qkv, TokenBlocks blocks) {
        norm.forward(x, a.norm1(), a.moments1());
        project(a, qkv, blocks);
        attention.forward(qkv, a, blocks);
        complete(x, a);
    }

    /**
     * Same as {@link #forward} where {@code qkv} still holds what that computed. What the norms of
     * heads keep is computed again, and the same queries and keys with it.
     */
    void forwardAgain(Tensor x, LayerActivations a, Tensor qkv, TokenBlocks blocks) {
        norm.forward(x, a.norm1(), a.moments1());
        if (headNorms != null) {
            project(a, qkv, blocks);
        }
        attention.forwardAgain(qkv, a, blocks);
        complete(x, a);
    }

    private void project(LayerActivations a, Tensor qkv, TokenBlocks blocks) {
        Tensor normed = queryKeyValue.gather(a.norm1());
        if (MicroBatchRows.adjacent(qkv, blocks)) {
            project(normed, 0, MicroBatchRows.of(qkv, blocks), a.headMoments(), blocks);
            return;
        }
        for (int b = 0; b < blocks.sequences(); b++) {
            HeadMoments kept = a.headMoments();
            project(
                    MicroBatchRows.inUnit(normed, blocks, b),
                    b * blocks.tokens(),
                    MicroBatchRows.of(qkv, blocks, b),
                    kept == null ? null : kept.of(b * blocks.tokens(), blocks.tokens()),
                    blocks);
        }
    }

    private void complete(Tensor x, LayerActivations a) {
        if (compute.rounds()) {
            kernels.copy(a.attended(), a.attendedFactor());
        }
        output.multiplyAndAdd(a.attendedFactor(), residual.of(x, a.norm1()), a.middle());
    }

    private void project(
            Tensor x, int firstRow, Tensor qkv, @Nullable HeadMoments kept, TokenBlocks blocks) {
        Tensor room = compute.projected();
        Tensor bias = queryKeyValue.bias();
        if (room == null) {
            queryKeyValue.multiply(x, firstRow, qkv);
            complete(qkv, bias, kept, blocks);
            return;
        }
        if (bias != null && joins) {
            queryKeyValue.multiplyThen(x, new Epilogue.Bias(bias), qkv);
            return;
        }
        Tensor projected = Workspace.narrow(room, qkv.columns()).rows(0, qkv.rows());
        queryKeyValue.multiply(x, firstRow, projected);
        if (bias != null && headNorms == null && turns == null) {
            kernels.addBiasRounded(projected, bias, qkv);
        } else {
            complete(projected, bias, kept, blocks);
            kernels.copy(projected, qkv);
        }
    }

    private void complete(
            Tensor qkv, @Nullable Tensor bias, @Nullable HeadMoments kept, TokenBlocks blocks) {
        if (bias != null) {
            kernels.addBias(qkv, bias);
        }
        if (headNorms != null) {
            headNorms.forward(qkv, requireNonNull(kept));
        }
        if (turns != null) {
            turns.turn(qkv.columns(0, turning), blocks, false);
        }
    }

    /**
     * Returns the gradient of the projection's output.
     *
     * @param dQkv of the micro-batch, of whose rows of this unit all is known
     */
    private Tensor dProjected(LayerActivations a, Tensor dQkv, Workspace work, TokenBlocks blocks) {
        Tensor rows = unitRows(dQkv, work, blocks);
        if (turns != null) {
            turns.turn(rows.columns(0, turning), blocks, true);
        }
        if (headNorms != null) {
            headNorms.backward(rows, requireNonNull(a.headMoments()), blocks);
        }
        return rows;
    }

    /** Returns whether a backward adds to any gradient. */
    boolean isTrained() {
        return trained;
    }

    /**
     * @param dQkv of the micro-batch; keys' and values' rows hold what later slices added
     * @param dStream the gradient of {@code middle} on entry, of {@code x} on return if anybody
     *     needs that
     * @param goesOn whether anybody does
     */
    void backward(
            Tensor x,
            LayerActivations a,
            Tensor qkv,
            Tensor dQkv,
            Tensor dStream,
            Workspace work,
            TokenBlocks blocks,
            boolean goesOn) {
        Tensor dOutput = output.outputGradient(dStream);
        Tensor dAttended = Workspace.narrow(work.dAttended(), a.attended().columns());
        Tensor dProjected;
        if (joins && attention.roundsGradients(qkv, blocks)) {
            dAttended = compute.keptIn(dAttended);
            dProjected = compute.keptIn(dQkv);
            output.backward(a.attendedFactor(), dOutput, dAttended, null, work, blocks);
            attention.backward(qkv, a, dAttended, dProjected, blocks);
            queryKeyValue.addBiasGradient(dProjected, blocks);
        } else {
            output.backward(a.attendedFactor(), dOutput, dAttended, null, work, blocks);
            attention.backward(qkv, a, dAttended, dQkv, blocks);
            dProjected =
                    queryKeyValue.backwardBias(dProjected(a, dQkv, work, blocks), work, blocks);
        }
        if (!goesOn && !normTrained) {
            queryKeyValue.backwardWeight(a.norm1(), dProjected, blocks);
            return;
        }
        Tensor dNorm = queryKeyValue.backward(a.norm1(), dProjected, dNormed(work), blocks);
        residual.backward(dNorm, dStream);
        norm.backward(dNorm, x, a.moments1(), dStream, blocks);
    }

    /**
     * Same as {@link #backward} without the products for the weights; keeps what they need where
     * the space is no longer used: the gradient of the branch's output in that of {@code middle},
     * those of queries, keys and values in the unit's rows of {@code qkv}.
     */
    void backwardInput(
            Tensor x,
            LayerActivations a,
            Tensor qkv,
            Tensor dQkv,
            Tensor dStream,
            Workspace work,
            TokenBlocks blocks,
            boolean goesOn) {
        Tensor dOutput = output.outputGradient(dStream);
        kernels.copy(dOutput, compute.keptIn(a.middle()));
        Tensor dAttended = Workspace.narrow(work.dAttended(), a.attended().columns());
        var _ = output.backwardInput(dOutput, dAttended, null, work, blocks);
        attention.backward(qkv, a, dAttended, dQkv, blocks);
        Tensor dProjected = dProjected(a, dQkv, work, blocks);
        MicroBatchRows.scatter(kernels, dProjected, blocks, qkv);
        Tensor factor = queryKeyValue.backwardBias(dProjected, work, blocks);
        if (!goesOn && !normTrained) {
            return;
        }
        Tensor dNorm = queryKeyValue.backwardInput(factor, dNormed(work));
        residual.backward(dNorm, dStream);
        norm.backward(dNorm, x, a.moments1(), dStream, blocks);
    }

    private Tensor dNormed(Workspace work) {
        return roundsNorm ? compute.keptIn(work.dModel()) : work.dModel();
    }

    /** Computes the products that {@link #backwardInput} left out. */
    void backwardWeight(LayerActivations a, Tensor qkv, Workspace work, TokenBlocks blocks) {
        output.backwardWeight(a.attendedFactor(), compute.keptIn(a.middle()), blocks);
        queryKeyValue.backwardWeight(a.norm1(), unitRows(qkv, work, blocks), blocks);
    }

    private Tensor unitRows(Tensor dQkv, Workspace work, TokenBlocks blocks) {
        if (MicroBatchRows.adjacent(dQkv, blocks)) {
            return MicroBatchRows.of(dQkv, blocks);
        }
        Tensor gathered = Workspace.narrow(requireNonNull(work.dQueryKeyValue()), dQkv.columns());
        MicroBatchRows.gather(kernels, dQkv, blocks, gathered);
        return gathered;
    }
}
