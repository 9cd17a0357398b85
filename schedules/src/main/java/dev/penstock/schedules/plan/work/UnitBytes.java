package dev.penstock.schedules.plan.work;

/**
 * Bytes of activations of one unit (micro-batch, slice) on one device, per block (Korthikanti et
 * al. 2022, arXiv 2205.05198, equation 2 without the attention scores, which are always computed a
 * second time): {@code s b h (10 + 24/t)} with 16-bit numbers in a GPT-2.
 *
 * <p>Every shard keeps 5 h columns: the inputs of two norms and what leaves them, and dropout's
 * masks. It keeps its part of the queries, keys, values and attention's output, and of what enters
 * and leaves the activation.
 */
public final class UnitBytes {
    private UnitBytes() {}

    /** What a block keeps for its backward. */
    static long kept(ModelShape model, TrainingBytes bytes, int tensor, long tokens) {
        double divided =
                2 * model.queryColumns()
                        + 2 * model.keyColumns()
                        + model.hiddenColumns()
                        + model.block().hidden();
        return Math.round(bytes.activation() * tokens * (5.0 * model.width() + divided / tensor));
    }

    /**
     * What a block keeps that is recomputed: its input, and with slices the keys and values that
     * later slices need.
     */
    static long recomputed(
            ModelShape model, TrainingBytes bytes, int tensor, long tokens, boolean sliced) {
        return bytes.activation() * tokens * model.width()
                + (sliced ? keysAndValues(model, bytes, tokens) / tensor : 0);
    }

    /** Keys and values of a block. */
    static long keysAndValues(ModelShape model, TrainingBytes bytes, long tokens) {
        return 2L * bytes.activation() * tokens * model.keyColumns();
    }

    /** What goes to the next stage, one shard's part of it. */
    public static long hop(ModelShape model, TrainingBytes bytes, int tensor, long tokens) {
        return Math.ceilDiv(bytes.activation() * tokens * model.width(), (long) tensor);
    }
}
