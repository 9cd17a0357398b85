package dev.penstock.runtime.model.layers;

import static java.util.Objects.requireNonNull;

import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.activations.LayerActivations;
import dev.penstock.runtime.model.activations.UnitActivations;
import dev.penstock.runtime.model.activations.Workspace;
import dev.penstock.runtime.model.parameters.ParameterStream;
import dev.penstock.runtime.model.parameters.StageParameters;
import dev.penstock.runtime.model.shape.ShardShape;
import dev.penstock.runtime.model.shape.StageRole;
import dev.penstock.runtime.model.shape.TokenPlaces;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/**
 * The layers of a stage in order, over any token slice. Training and generation run the same
 * layers.
 */
public final class StageLayers {
    private final Compute compute;
    private final @Nullable TokenEmbedding embedding;
    private final List<AttentionBlock> attentions = new ArrayList<>();
    private final List<MlpBlock> mlps = new ArrayList<>();
    private final @Nullable LossHead head;
    private final ParameterStream stream;
    private final List<String> inputGradientPlaces = new ArrayList<>();
    private int end = -1;

    /**
     * @param stream provides the layers' parameters
     * @param attention of each block, by its index in the stage
     * @param turns of queries and keys; null where they do not turn
     * @param held where the tokens of this rank lie
     * @param logits scratch of {@link LossHead#logitsScratch}; null on stages without a head
     */
    public StageLayers(
            Compute compute,
            ShardShape shape,
            StageRole role,
            StageParameters parameters,
            ParameterStream stream,
            IntFunction<Attention> attention,
            @Nullable HeadTurns turns,
            TokenPlaces held,
            @Nullable Tensor logits) {
        this.compute = compute;
        this.stream = stream;
        embedding =
                parameters.embedding() == null
                        ? null
                        : new TokenEmbedding(compute, shape, parameters.embedding(), held);
        for (int i = 0; i < role.layers(); i++) {
            attentions.add(
                    new AttentionBlock(
                            compute, shape, attention.apply(i), turns, parameters.layers().get(i)));
            mlps.add(new MlpBlock(compute, shape.model().block(), parameters.layers().get(i)));
            inputGradientPlaces.add(
                    "gradient of the input of h.%d (backward)".formatted(role.firstLayer() + i));
        }
        head =
                parameters.head() == null
                        ? null
                        : new LossHead(
                                compute,
                                shape.model().block(),
                                parameters.head(),
                                requireNonNull(logits));
    }

    /**
     * Lets backwards end in a block: nobody needs the gradient of its input.
     *
     * @param block its index in the stage
     */
    public void endBackwardsIn(int block) {
        end = block;
    }

    public int size() {
        return attentions.size();
    }

    public @Nullable LossHead head() {
        return head;
    }

    /**
     * Runs a slice through the blocks, and through the final norm on the last stage.
     *
     * @param tokens {@code [1, n]} on the first stage
     * @param input the stage's input elsewhere
     * @param qkv entry i: queries, keys and values in block i, of the micro-batch or as the
     *     attention wants them
     * @param output the stage's output, except on the last stage
     */
    public void forward(
            @Nullable Tensor tokens,
            @Nullable Tensor input,
            UnitActivations a,
            List<Tensor> qkv,
            @Nullable Tensor output,
            TokenBlocks blocks) {
        stream.forward();
        stream.enter();
        embed(tokens, a, output, blocks);
        stream.leave();
        for (int i = 0; i < size(); i++) {
            LayerActivations layer = a.layers().get(i);
            stream.enter();
            attentions.get(i).forward(a.stream(i, input), layer, qkv.get(i), blocks);
            mlps.get(i).forward(layer, a.stream(i + 1, output));
            stream.leave();
        }
        stream.enter();
        normalise(input, a);
        stream.leave();
    }

    /**
     * Recomputes what a forward wrote to {@code a}, except the stage's output, which is not needed
     * again.
     *
     * @param kept whether {@code qkv} still holds what the forward computed
     */
    public void recompute(
            @Nullable Tensor tokens,
            @Nullable Tensor input,
            UnitActivations a,
            List<Tensor> qkv,
            boolean kept,
            TokenBlocks blocks) {
        stream.forward();
        stream.enter();
        if (size() > 0 || head != null) {
            embed(tokens, a, null, blocks);
        }
        stream.leave();
        for (int i = 0; i < size(); i++) {
            stream.enter();
            LayerActivations layer = a.layers().get(i);
            attend(i, a.stream(i, input), layer, qkv.get(i), kept, blocks);
            if (i + 1 < size() || head != null) {
                mlps.get(i).forward(layer, a.stream(i + 1, null));
            } else {
                mlps.get(i).activate(layer);
            }
            stream.leave();
        }
        stream.enter();
        normalise(input, a);
        stream.leave();
    }

    /**
     * Same as {@link #recompute} for one block whose input is available.
     *
     * @param i the block's index in the stage
     * @param x the block's input
     */
    public void recompute(
            int i, Tensor x, LayerActivations layer, Tensor qkv, boolean kept, TokenBlocks blocks) {
        attend(i, x, layer, qkv, kept, blocks);
        mlps.get(i).activate(layer);
    }

    private void attend(
            int i, Tensor x, LayerActivations layer, Tensor qkv, boolean kept, TokenBlocks blocks) {
        AttentionBlock attention = attentions.get(i);
        if (kept) {
            attention.forwardAgain(x, layer, qkv, blocks);
        } else {
            attention.forward(x, layer, qkv, blocks);
        }
    }

    private void embed(
            @Nullable Tensor tokens,
            UnitActivations a,
            @Nullable Tensor output,
            TokenBlocks blocks) {
        if (embedding != null) {
            Tensor y = a.stream(0, size() == 0 ? output : null);
            embedding.forward(requireNonNull(tokens), y, blocks);
        }
    }

    private void normalise(@Nullable Tensor input, UnitActivations a) {
        if (head != null) {
            head.normalise(a.stream(size(), input), requireNonNull(a.head()));
        }
    }

    /**
     * Runs one block of a slice backward.
     *
     * @param i the block's index in the stage
     * @param x the block's input
     * @param dQkv gradient of queries, keys and values of the micro-batch in this block
     * @param dStream the gradient of the block's output on entry, of its input on return if anybody
     *     needs that
     */
    public void backward(
            int i,
            Tensor x,
            LayerActivations layer,
            Tensor qkv,
            Tensor dQkv,
            Tensor dStream,
            Workspace work,
            TokenBlocks blocks) {
        AttentionBlock attention = attentions.get(i);
        boolean goesOn = i != end;
        boolean attends = goesOn || attention.isTrained();
        mlps.get(i).backward(layer, dStream, work, blocks, attends);
        if (attends) {
            attention.backward(x, layer, qkv, dQkv, dStream, work, blocks, goesOn);
        }
        compute.guard().check(dStream, inputGradientPlaces.get(i));
    }

    /**
     * Same as {@link #backward} without the products for the weights.
     *
     * @param keptOutputGradient receives the gradient of the block's output as its last branch sees
     *     it
     */
    public void backwardInput(
            int i,
            Tensor x,
            LayerActivations layer,
            Tensor qkv,
            Tensor dQkv,
            Tensor dStream,
            Tensor keptOutputGradient,
            Workspace work,
            TokenBlocks blocks) {
        AttentionBlock attention = attentions.get(i);
        boolean goesOn = i != end;
        boolean attends = goesOn || attention.isTrained();
        mlps.get(i).backwardInput(layer, dStream, keptOutputGradient, work, blocks, attends);
        if (attends) {
            attention.backwardInput(x, layer, qkv, dQkv, dStream, work, blocks, goesOn);
        }
        compute.guard().check(dStream, inputGradientPlaces.get(i));
    }

    /** Computes the products that {@link #backwardInput} left out. */
    public void backwardWeight(
            int i,
            LayerActivations layer,
            Tensor qkv,
            Tensor keptOutputGradient,
            Workspace work,
            TokenBlocks blocks) {
        mlps.get(i).backwardWeight(layer, keptOutputGradient, blocks);
        if (i != end || attentions.get(i).isTrained()) {
            attentions.get(i).backwardWeight(layer, qkv, work, blocks);
        }
    }

    /** Ends a backward on the first stage: scatters the gradient into both tables. */
    public void embeddingBackward(Tensor dStream, Tensor tokens, TokenBlocks blocks) {
        requireNonNull(embedding).backward(dStream, tokens, blocks);
    }
}
