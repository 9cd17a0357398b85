package dev.penstock.schedules.plan.work;

import java.util.List;

/**
 * What a transformer block consists of, as far as work and memory depend on it.
 *
 * @param keyHeads heads of keys, and of values: a divisor of the heads of queries; a
 *     tensor-parallel shard takes whole ones
 * @param headSize columns of a head
 * @param hidden columns of the MLP after its activation; divided among tensor-parallel shards
 * @param hiddenParts layers of so many columns side by side before the activation: 2 with a gate
 * @param vectors parameters of biases and gains
 * @param windows entry l: how many tokens a token of layer l attends to, its own and those just
 *     before it, or 0 for all; empty: all layers attend to all
 * @param bothWays whether tokens attend to all of their sequence, those behind them too
 */
public record BlockShape(
        int keyHeads,
        int headSize,
        int hidden,
        int hiddenParts,
        long vectors,
        List<Integer> windows,
        boolean bothWays) {
    public BlockShape {
        windows = List.copyOf(windows);
        if (keyHeads < 1 || headSize < 1 || hidden < 1 || hiddenParts < 1 || vectors < 0) {
            throw new IllegalArgumentException(
                    "a block needs sizes of 1 or more, got %d heads of keys, of %d columns, %d hidden columns, %d parts, %d vectors"
                            .formatted(keyHeads, headSize, hidden, hiddenParts, vectors));
        }
        if (windows.stream().anyMatch(window -> window < 0)) {
            throw new IllegalArgumentException(
                    "a window holds 1 token or more, or all (0), got " + windows);
        }
    }

    /** A block whose tokens attend to nothing behind them. */
    public BlockShape(
            int keyHeads,
            int headSize,
            int hidden,
            int hiddenParts,
            long vectors,
            List<Integer> windows) {
        this(keyHeads, headSize, hidden, hiddenParts, vectors, windows, false);
    }

    /** Returns the block of a GPT-2: as many keys as queries, an MLP 4 times as wide, biases. */
    static BlockShape gpt2(int width, int heads) {
        return new BlockShape(heads, width / heads, 4 * width, 1, 13L * width, List.of());
    }
}
