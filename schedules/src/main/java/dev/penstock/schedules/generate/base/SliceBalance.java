package dev.penstock.schedules.generate.base;

import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Cuts a sequence into slices of equal work (Sun et al. 2024, "Seq1F1B", section 3.4). A token
 * attends to all tokens before it, so a late slice of the same work is shorter. A slice of l tokens
 * after c others costs
 *
 * <pre>
 * FLOPs(l, c) = l * (perToken + perPair * (c + l / 2))
 * </pre>
 *
 * <p>and where layers attend to no more than a window of tokens, the mean over the layers of what
 * each costs.
 *
 * @param perToken FLOPs of a token without attention; for the forward of a layer twice the
 *     parameters of its matrices, in a GPT-2 24 x width^2
 * @param perPair FLOPs of a token's attention to one token; 4 x the columns of its queries for the
 *     forward of a layer
 * @param windows how many tokens the tokens of each layer attend to, or 0 for all; empty: all
 *     layers attend to all. Only how often each occurs matters, and they are kept as few as that
 *     takes.
 */
public record SliceBalance(long perToken, long perPair, List<Integer> windows) {
    /** Tokens that lengths are multiples of where nobody says another number, as in TeraPipe. */
    public static final int GRID = 8;

    public SliceBalance {
        if (perToken < 0 || perPair < 0 || perToken + perPair == 0) {
            throw new IllegalArgumentException(
                    "a token costs something, got %d FLOPs and %d for each token before it"
                            .formatted(perToken, perPair));
        }
        windows = fewest(windows);
    }

    /** The law of layers that attend to all tokens. */
    public SliceBalance(long perToken, long perPair) {
        this(perToken, perPair, List.of());
    }

    /** Keeps 5 and 0 of 5, 0, 5, 0: sums over 96 layers of long sequences would be too large. */
    private static List<Integer> fewest(List<Integer> windows) {
        var counts = new TreeMap<Integer, Integer>();
        windows.forEach(window -> counts.merge(window, 1, Integer::sum));
        int divisor = 0;
        for (int count : counts.values()) {
            divisor = BigInteger.valueOf(divisor).gcd(BigInteger.valueOf(count)).intValue();
        }
        var fewest = new ArrayList<Integer>();
        for (Map.Entry<Integer, Integer> entry : counts.entrySet()) {
            fewest.addAll(Collections.nCopies(entry.getValue() / divisor, entry.getKey()));
        }
        return fewest.equals(List.of(0)) ? List.of() : List.copyOf(fewest);
    }

    /** The law of a GPT-2's layers of this width; the number of layers does not matter. */
    public static SliceBalance ofWidth(int width) {
        return new SliceBalance(24L * width * width, 4L * width);
    }

    /**
     * Twice the FLOPs, a whole number, of a slice of so many tokens after so many others; with
     * windows the sum of one layer of each.
     */
    public long doubledFlops(int length, int context) {
        if (windows.isEmpty()) {
            return length * (2 * perToken + perPair * (2L * context + length));
        }
        long pairs = 0;
        for (int window : windows) {
            pairs += doubledPairs(length, context, window == 0 ? Long.MAX_VALUE : window);
        }
        return 2 * perToken * windows.size() * length + perPair * pairs;
    }

    /** Twice the area below {@code min(tokens before, window)}, from the context to its end. */
    private static long doubledPairs(long length, long context, long window) {
        long begin = Math.min(context, window);
        long end = Math.min(context + length, window);
        long rest = length - (end - begin);
        return (end - begin) * (begin + end) + (rest == 0 ? 0 : 2 * rest * window);
    }

    /**
     * The lengths of the slices, first slice first. From the last slice back, each takes its equal
     * share of what is left, rounded to the grid so that the most expensive slice is as cheap as it
     * can be on this grid.
     *
     * @param tokens length of the sequence
     * @param slices how many
     * @param grid every length is a multiple of it
     * @throws IllegalArgumentException if the grid does not fit the sequence
     */
    public List<Integer> lengths(int tokens, int slices, int grid) {
        if (tokens < 1 || slices < 1 || grid < 1 || tokens % grid != 0 || slices > tokens / grid) {
            throw new IllegalArgumentException(
                    "%d slices in multiples of %d tokens need a sequence of a multiple of that, at least %d, got %d"
                            .formatted(slices, grid, (long) slices * grid, tokens));
        }
        long limit = leastLimit(tokens, slices, grid);
        int[] furthest = furthest(tokens, slices, grid, limit);
        var lengths = new ArrayList<Integer>();
        int rest = tokens;
        for (int before = slices - 1; before > 0; before--) {
            int cut = cut(rest, before, furthest[before], grid, limit);
            lengths.add(rest - cut);
            rest = cut;
        }
        lengths.add(rest);
        Collections.reverse(lengths);
        return lengths;
    }

    /**
     * The same on a grid of {@value #GRID} tokens, as far as it fits the sequence; else to the
     * token.
     */
    public List<Integer> lengths(int tokens, int slices) {
        return lengthsInParts(tokens, slices, 1);
    }

    /** The same in multiples of so many parts, which every slice is divided among. */
    public List<Integer> lengthsInParts(int tokens, int slices, int parts) {
        int grid = GRID;
        while (grid % parts != 0) {
            grid += GRID;
        }
        boolean fits = tokens % grid == 0 && (long) slices * grid <= tokens;
        return lengths(tokens, slices, fits ? grid : parts);
    }

    /** Where the last slice of {@code rest} tokens begins, with {@code before} slices before it. */
    private int cut(int rest, int before, int furthest, int grid, long limit) {
        int latest = Math.min(furthest, rest - grid);
        int cut = latest;
        long share = doubledFlops(rest, 0) / (before + 1);
        for (int earlier = latest - grid; earlier >= before * grid; earlier -= grid) {
            long flops = doubledFlops(rest - earlier, earlier);
            long less = doubledFlops(rest - cut, cut);
            if (flops > limit || Math.abs(flops - share) > Math.abs(less - share)) {
                break;
            }
            cut = earlier;
        }
        return cut;
    }

    /** The cost of the most expensive slice where it is cheapest: found by bisection. */
    private long leastLimit(int tokens, int slices, int grid) {
        long below = doubledFlops(grid, tokens - grid) - 1;
        long enough = doubledFlops(tokens, 0);
        while (enough - below > 1) {
            long middle = below + (enough - below) / 2;
            if (furthest(tokens, slices, grid, middle)[slices] >= tokens) {
                enough = middle;
            } else {
                below = middle;
            }
        }
        return enough;
    }

    /** Entry k is how many tokens k slices of at most the limit can hold. */
    private int[] furthest(int tokens, int slices, int grid, long limit) {
        var furthest = new int[slices + 1];
        for (int k = 1; k <= slices; k++) {
            int context = furthest[k - 1];
            int end = context;
            while (end < tokens && doubledFlops(end + grid - context, context) <= limit) {
                end += grid;
            }
            furthest[k] = end;
        }
        return furthest;
    }
}
