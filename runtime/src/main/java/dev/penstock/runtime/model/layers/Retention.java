package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.RetentionShape;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.activations.LayerActivations;
import dev.penstock.runtime.model.shape.MicroBatchRows;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Retention (Sun et al., arXiv 2307.08621) over sequences that this rank holds as a whole: {@code
 * silu(gate) * norm(retention)} of each head. A slice reads of earlier ones the state that they
 * left, whatever their length, and of later ones the gradient of the state that it left.
 *
 * @param epsilon of the norms of heads
 * @param states of the current unit, as kernels see them; of {@link DividedRetention} those of all
 *     units of the micro-batch
 */
public record Retention(
        Kernels kernels, RetentionShape shape, double epsilon, Supplier<Tensor> states)
        implements Attention {
    @Override
    public void forward(Tensor qkv, LayerActivations a, TokenBlocks blocks) {
        Tensor ofUnit = states.get();
        if (blocks.firstToken() == 0) {
            kernels.zero(ofUnit.rows(0, blocks.sequences()));
        }
        kernels.retentionStates(qkv, ofUnit, shape, MicroBatchRows.tokens(qkv, blocks), blocks);
        forwardAgain(qkv, a, blocks);
    }

    @Override
    public void forwardAgain(Tensor qkv, LayerActivations a, TokenBlocks blocks) {
        int tokens = MicroBatchRows.tokens(qkv, blocks);
        kernels.retention(qkv, states.get(), a.attended(), shape, tokens, blocks);
        normalise(qkv, a, blocks);
    }

    /** Norms and gates what leaves the heads. */
    void normalise(Tensor qkv, LayerActivations a, TokenBlocks blocks) {
        eachRun(
                MicroBatchRows.tokens(qkv, blocks),
                blocks,
                (row, own, count) ->
                        kernels.gatedHeadNorm(
                                a.attended().rows(own, count),
                                gates(qkv.rows(row, count)),
                                a.attendedFactor().rows(own, count),
                                a.logSumExp().rows(own, count),
                                epsilon));
    }

    @Override
    public void backward(
            Tensor qkv, LayerActivations a, Tensor dAttended, Tensor dQkv, TokenBlocks blocks) {
        normaliseBackward(qkv, a, dAttended, dQkv, blocks);
        int tokens = MicroBatchRows.tokens(qkv, blocks);
        Tensor ofUnit = states.get();
        if (blocks.firstToken() + blocks.tokens() == tokens) {
            int behind = ofUnit.rows() - blocks.sequences();
            kernels.zero(ofUnit.rows(behind, blocks.sequences()));
        }
        kernels.retentionBackward(qkv, ofUnit, dAttended, dQkv, shape, tokens, blocks);
    }

    /** The gradients of {@link #normalise}, in place of those of what it returned. */
    void normaliseBackward(
            Tensor qkv, LayerActivations a, Tensor dAttended, Tensor dQkv, TokenBlocks blocks) {
        eachRun(
                MicroBatchRows.tokens(qkv, blocks),
                blocks,
                (row, own, count) -> {
                    Tensor gradient = dAttended.rows(own, count);
                    kernels.gatedHeadNormBackward(
                            gradient,
                            a.attended().rows(own, count),
                            gates(qkv.rows(row, count)),
                            a.logSumExp().rows(own, count),
                            gradient,
                            gates(dQkv.rows(row, count)));
                });
    }

    private @Nullable Tensor gates(Tensor rows) {
        return shape.gated() ? rows.columns(shape.firstGate(), shape.valueColumns()) : null;
    }

    private interface Run {
        /**
         * @param row the first in the micro-batch
         * @param own the first in the unit
         */
        void run(int row, int own, int count);
    }

    /** Runs over rows that lie side by side: those of the unit, or of each of its sequences. */
    private static void eachRun(int tokens, TokenBlocks blocks, Run run) {
        if (blocks.tokens() == tokens) {
            run.run(0, 0, blocks.rows());
            return;
        }
        for (int b = 0; b < blocks.sequences(); b++) {
            run.run(b * tokens + blocks.firstToken(), b * blocks.tokens(), blocks.tokens());
        }
    }
}
