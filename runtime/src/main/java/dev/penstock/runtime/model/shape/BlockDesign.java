package dev.penstock.runtime.model.shape;

import java.util.Collections;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What a transformer block consists of: attention, then an MLP, each behind a norm and each adding
 * its result to the residual stream.
 *
 * @param norm of both halves, and of the model's end
 * @param heads of layers that are as usual in the family: of attention, or of retention
 * @param biases the linear layers that have one
 * @param activation of the MLP
 * @param hidden columns of the MLP's hidden layer, f
 * @param windows entry l: how many keys a query of layer l sees, its own and those just before it,
 *     or {@link #ALL}, or {@link #RETAINED}; empty: all layers are as usual and see all
 * @param encoder what a bidirectional model has besides; null where queries see nothing behind
 *     their own token
 */
public record BlockDesign(
        NormDesign norm,
        HeadDesign heads,
        Biases biases,
        Activation activation,
        int hidden,
        List<Integer> windows,
        @Nullable EncoderDesign encoder) {
    /** The window of a layer whose queries see all keys up to their own. */
    public static final int ALL = 0;

    /** In place of a window: the layer has a retention, where others of the model attend. */
    public static final int RETAINED = -1;

    /** The linear layers of a block that have a bias. */
    public enum Biases {
        ALL,
        QUERY_KEY_VALUE,
        NONE
    }

    /** The function between the MLP's linear layers. */
    public enum Activation {
        /** The form with tanh. */
        GELU_TANH,
        /** The exact form, with erf. */
        GELU,
        /** {@code silu(gate) * up}, of two hidden layers side by side. */
        SWIGLU,
        /** {@code gelu(gate) * up} with the exact form, of two hidden layers side by side. */
        GEGLU;

        /** Returns how many hidden layers lie side by side. */
        public int parts() {
            return this == SWIGLU || this == GEGLU ? 2 : 1;
        }
    }

    public BlockDesign {
        boolean retention = heads.retention() != null;
        windows =
                retention && windows.stream().allMatch(window -> window == RETAINED)
                        ? List.of()
                        : List.copyOf(windows);
        if (hidden < 1) {
            throw new IllegalArgumentException(
                    "a hidden layer needs 1 column or more, got " + hidden);
        }
        if (windows.stream().anyMatch(window -> window < (retention ? RETAINED : ALL))) {
            throw new IllegalArgumentException(
                    "a window holds 1 key or more, or all (0), and a retention (-1) needs a family that has it, got "
                            + windows);
        }
        if (encoder != null && (retention || windows.stream().anyMatch(w -> w != ALL))) {
            throw new IllegalArgumentException(
                    "expected attention to all tokens where queries see both ways");
        }
    }

    /** The blocks of a model that predicts the next token. */
    public BlockDesign(
            NormDesign norm,
            HeadDesign heads,
            Biases biases,
            Activation activation,
            int hidden,
            List<Integer> windows) {
        this(norm, heads, biases, activation, hidden, windows, null);
    }

    /** Returns the blocks of a GPT-2. */
    public static BlockDesign gpt2(int width, int heads) {
        return new BlockDesign(
                NormDesign.GPT2,
                new HeadDesign(heads, heads, width / heads, false, false),
                Biases.ALL,
                Activation.GELU_TANH,
                4 * width,
                List.of());
    }

    /**
     * Returns how many keys a query of a layer sees, or {@link #ALL}; of layers that attend, as
     * those with a retention have no window.
     */
    public int window(int layer) {
        return windows.isEmpty() ? ALL : windows.get(layer);
    }

    /** Returns whether some layer's queries do not see all keys. */
    public boolean hasWindows() {
        return windows.stream().anyMatch(window -> window > ALL);
    }

    /** Returns whether a layer has a retention. */
    public boolean retains(int layer) {
        return heads.retention() != null && (windows.isEmpty() || windows.get(layer) == RETAINED);
    }

    /** Returns whether any layer has a retention. */
    public boolean retains() {
        return heads.retention() != null && (windows.isEmpty() || windows.contains(RETAINED));
    }

    /** Returns whether any layer attends, and so needs the keys and values of earlier tokens. */
    public boolean attends() {
        return heads.retention() == null || !windows.isEmpty();
    }

    /** Returns whether some layers retain and others attend. */
    public boolean isMixed() {
        return retains() && attends();
    }

    /** Returns the heads of a layer. */
    public HeadDesign heads(int layer) {
        return retains(layer) ? heads : heads.attending();
    }

    /** Returns a block of a model whose layers are all as this one. */
    BlockDesign like(int layer, int layers) {
        return new BlockDesign(
                norm,
                heads(layer),
                biases,
                activation,
                hidden,
                retains(layer) || window(layer) == ALL
                        ? List.of()
                        : Collections.nCopies(layers, window(layer)),
                encoder);
    }

    /** Returns how many keys a query of a layer sees, or {@code all}. */
    long windowOr(int layer, int all) {
        return window(layer) == ALL ? all : window(layer);
    }

    /** Returns the columns of the linear layer before the activation. */
    public int hiddenColumns() {
        return activation.parts() * hidden;
    }

    /** Returns whether the projections to queries, keys and values have biases. */
    public boolean queryKeyValueBias() {
        return biases != Biases.NONE;
    }

    /** Returns whether the other linear layers have biases. */
    public boolean otherBiases() {
        return biases == Biases.ALL;
    }

    /** Returns the parameter count of the matrices of a layer's block. */
    long matrixParameters(int layer, long width) {
        HeadDesign own = heads(layer);
        return width * own.columns()
                + width * own.outputColumns()
                + width * hiddenColumns()
                + width * hidden;
    }

    /** Returns the parameter count of the biases and gains of a layer's block. */
    long vectorParameters(int layer, long width) {
        long norms = 2 * norm.parameters(width) + (heads.norms() ? 2L * heads.size() : 0);
        long first = queryKeyValueBias() ? heads(layer).columns() : 0;
        long others = otherBiases() ? 2 * width + hiddenColumns() : 0;
        return norms + first + others;
    }
}
