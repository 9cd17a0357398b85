package dev.penstock.runtime.config;

import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * Section {@code schedule}: the order in which ranks work.
 *
 * @param backward order of the backward passes (gpipe)
 * @param slices how many equal token slices a sequence is cut into (terapipe, seq1f1b)
 * @param sliceLengths tokens of each slice instead of equal ones (terapipe, seq1f1b)
 * @param file an order written by hand; it takes the place of {@code kind} and its options
 */
public record ScheduleSection(
        @Setting(is = "1f1b", doc = "the order's family") Kind kind,
        @Setting(is = "fifo", doc = "order of gpipe's backward passes") Backward backward,
        @Setting(
                        is = "4",
                        range = "[1, )",
                        doc = "equal token slices of a sequence (terapipe, seq1f1b)")
                int slices,
        @Setting(
                        is = "equal",
                        word = "equal",
                        range = "[1, )",
                        doc = "tokens of each slice, such as [96, 88, 72] (terapipe, seq1f1b)")
                Optional<List<Integer>> sliceLengths,
        @Setting(
                        is = "none",
                        word = "none",
                        doc = "an order written by hand, in place of schedule.kind")
                Optional<Path> file) {

    /** A family of orders that is generated. */
    public enum Kind implements Worded {
        ONE_FORWARD_ONE_BACKWARD("1f1b", false),
        GPIPE("gpipe", false),
        TERAPIPE("terapipe", true),
        SEQ1F1B("seq1f1b", true);

        private final String word;
        private final boolean sliced;

        Kind(String word, boolean sliced) {
            this.word = word;
            this.sliced = sliced;
        }

        @Override
        public String word() {
            return word;
        }

        /** Whether the order works on token slices. */
        public boolean sliced() {
            return sliced;
        }
    }

    /** In which order GPipe runs its backward passes. */
    public enum Backward {
        FIFO,
        REVERSE
    }

    /**
     * Tokens of every slice of a sequence, first slice first: one entry for a kind that does not
     * cut sequences. Equal slices differ by at most one token.
     */
    public List<Integer> tokensPerSlice(int context) {
        if (!kind.sliced()) {
            return List.of(context);
        }
        return sliceLengths.orElseGet(
                () ->
                        IntStream.range(0, slices)
                                .mapToObj(i -> context / slices + (i < context % slices ? 1 : 0))
                                .toList());
    }
}
