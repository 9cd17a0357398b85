package dev.penstock.runtime.launch;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** What has to be said of token slices whose edges are not on the grid of sums over tokens. */
public final class SliceNote {
    /** The default of {@code device.reduction-block}. */
    public static final int USUAL_BLOCK = 128;

    private SliceNote() {}

    /**
     * Returns what is said about slices whose losses have bits of their own.
     *
     * @param lengths tokens of each slice
     * @param reductionBlock tokens of a block of summation
     * @return nothing if the slices give the bits of whole sequences
     */
    public static Optional<String> of(List<Integer> lengths, int reductionBlock) {
        int context = lengths.stream().mapToInt(Integer::intValue).sum();
        int block = Math.min(reductionBlock, context);
        List<Integer> off = new ArrayList<>();
        int edge = 0;
        int common = block;
        for (int length : lengths.subList(0, lengths.size() - 1)) {
            edge += length;
            if (edge % block != 0) {
                off.add(edge);
            }
            common = greatestCommonDivisor(common, edge);
        }
        return off.isEmpty()
                ? Optional.empty()
                : Optional.of(
                        "slices that end at token %s are off the blocks of %d in which sums are taken: losses equal those of whole sequences within tolerance, not to the bit; device.reduction-block = %d would have both"
                                .formatted(off, block, common));
    }

    private static int greatestCommonDivisor(int a, int b) {
        return b == 0 ? a : greatestCommonDivisor(b, a % b);
    }
}
