package dev.penstock.runtime.model.shape;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What a transformer block consists of: attention, then an MLP, each behind a norm and each adding
 * its result to the residual stream.
 *
 * @param norm of both halves, and of the model's end
 * @param heads of the attention
 * @param biases the linear layers that have one
 * @param activation of the MLP
 * @param hidden columns of the MLP's hidden layer, f
 * @param windows entry l: how many keys a query of layer l sees, its own and those just before it,
 *     or {@link #ALL}; empty: all layers see all
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
        windows = List.copyOf(windows);
        if (hidden < 1) {
            throw new IllegalArgumentException(
                    "a hidden layer needs 1 column or more, got " + hidden);
        }
        if (windows.stream().anyMatch(window -> window < 0)) {
            throw new IllegalArgumentException(
                    "a window holds 1 key or more, or all (0), got " + windows);
        }
        if (heads.retention() != null && windows.stream().anyMatch(window -> window != ALL)) {
            throw new IllegalArgumentException(
                    "a retention forgets by its decay: expected layers that see all, got windows "
                            + windows);
        }
        if (encoder != null
                && (heads.retention() != null || windows.stream().anyMatch(w -> w != ALL))) {
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

    /** Returns how many keys a query of a layer sees, or {@link #ALL}. */
    public int window(int layer) {
        return windows.isEmpty() ? ALL : windows.get(layer);
    }

    /** Returns whether some layer's queries do not see all keys. */
    public boolean hasWindows() {
        return windows.stream().anyMatch(window -> window != ALL);
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

    /** Returns the parameter count of a block's matrices. */
    long matrixParameters(long width) {
        return width * heads.columns()
                + width * heads.outputColumns()
                + width * hiddenColumns()
                + width * hidden;
    }

    /** Returns the parameter count of a block's biases and gains. */
    long vectorParameters(long width) {
        long norms = 2 * norm.parameters(width) + (heads.norms() ? 2L * heads.size() : 0);
        long first = queryKeyValueBias() ? heads.columns() : 0;
        long others = otherBiases() ? 2 * width + hiddenColumns() : 0;
        return norms + first + others;
    }
}
