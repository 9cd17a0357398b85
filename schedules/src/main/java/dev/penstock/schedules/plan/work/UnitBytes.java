package dev.penstock.schedules.plan.work;

/**
 * Bytes of activations of one unit (micro-batch, slice) on one device, per block (Korthikanti et
 * al. 2022, arXiv 2205.05198, equation 2 without the attention scores, which are always computed a
 * second time): {@code s b h (10 + 24/t)} with 16-bit numbers.
 */
public final class UnitBytes {
    private UnitBytes() {}

    /** What a block keeps for its backward. */
    static long kept(ModelShape model, TrainingBytes bytes, int tensor, long tokens) {
        return Math.round(
                bytes.activation() * tokens * (double) model.width() * (5 + 12.0 / tensor));
    }

    /**
     * What a block keeps that is recomputed: its input, and with slices the keys and values that
     * later slices need.
     */
    static long recomputed(
            ModelShape model, TrainingBytes bytes, int tensor, long tokens, boolean sliced) {
        long input = bytes.activation() * tokens * model.width();
        return input + (sliced ? 2 * input / tensor : 0);
    }

    /** What goes to the next stage, one shard's part of it. */
    public static long hop(ModelShape model, TrainingBytes bytes, int tensor, long tokens) {
        return Math.ceilDiv(bytes.activation() * tokens * model.width(), (long) tensor);
    }
}
