package dev.penstock.runtime.model.layers;

import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.activations.LayerActivations;

/** Attention of a unit's queries, wherever the keys and values of their sequences lie. */
public interface Attention {
    /**
     * Takes the group of those who hold the sequences together.
     *
     * @param context the ranks with the parts of these sequences, this one among them
     */
    default void connect(CollectiveGroup context) {}

    /**
     * Attends, and keeps in {@code a} what the backward needs.
     *
     * @param qkv of the micro-batch's tokens that this rank holds
     */
    void forward(Tensor qkv, LayerActivations a, TokenBlocks blocks);

    /** Same as {@link #forward} where all that is kept of the micro-batch is still there. */
    default void forwardAgain(Tensor qkv, LayerActivations a, TokenBlocks blocks) {
        forward(qkv, a, blocks);
    }

    /**
     * Returns whether gradients may be rounded as products read them: where a backward writes each
     * once.
     */
    default boolean roundsGradients(Tensor qkv, TokenBlocks blocks) {
        return false;
    }

    /**
     * The gradients of {@link #forward}.
     *
     * @param dAttended gradient of the unit's output
     * @param dQkv dq of the unit's rows is written, dk and dv accumulate; of {@link WholeAttention}
     *     all are written where the unit has whole sequences
     */
    void backward(
            Tensor qkv, LayerActivations a, Tensor dAttended, Tensor dQkv, TokenBlocks blocks);
}
