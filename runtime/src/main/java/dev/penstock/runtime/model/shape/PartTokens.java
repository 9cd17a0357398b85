package dev.penstock.runtime.model.shape;

import dev.penstock.cuda.device.TokenBlocks;
import java.util.ArrayList;
import java.util.List;

/**
 * The tokens of every sequence that a context part holds. Each slice is cut into two chunks per
 * part, of which a part holds one from the front and its mirror image from the end: late tokens
 * attend to more keys than early ones, and this way all parts have the same amount of work (Llama
 * 3, arXiv 2407.21783, section 3.3.2).
 *
 * <pre>
 *   a slice of 8 tokens    0 1   2 3   4 5   6 7
 *   held by part           0     1     1     0        part 0 holds 0 1 6 7, part 1 holds 2 3 4 5
 * </pre>
 *
 * @param runs in the order of the sequence, which is also that of the part's own tokens
 */
public record PartTokens(List<Run> runs) implements TokenPlaces {
    /**
     * A run of tokens that are consecutive in the sequence.
     *
     * @param firstHere the first one, counted among the part's own
     * @param first the first one, counted in the sequence
     */
    public record Run(int firstHere, int first, int tokens) {
        private Run within(int from, int to) {
            int start = Math.max(firstHere, from);
            int end = Math.min(firstHere + tokens, to);
            return new Run(start, first + start - firstHere, end - start);
        }

        /** Returns the run of one sequence, cut on a grid that begins with the sequence. */
        public TokenBlocks chunks(int grid) {
            return new TokenBlocks(1, tokens, first, grid);
        }
    }

    public PartTokens {
        runs = List.copyOf(runs);
    }

    /** All tokens of whole sequences. */
    static PartTokens all(int context) {
        return new PartTokens(List.of(new Run(0, 0, context)));
    }

    /**
     * The tokens of one of several parts, each of which has the same number of tokens of every
     * slice.
     */
    static PartTokens of(BatchShape whole, int parts, int part) {
        if (parts == 1) {
            return all(whole.context());
        }
        List<Run> runs = new ArrayList<>();
        int here = 0;
        for (int slice = 0; slice < whole.slices(); slice++) {
            int own = whole.sliceLengths().get(slice) / parts;
            int early = early(own);
            int late = own - early;
            int first = whole.firstToken(slice);
            runs.add(new Run(here, first + part * early, early));
            int lateFirst = first + parts * early + (parts - 1 - part) * late;
            runs.add(new Run(here + early, lateFirst, late));
            here += own;
        }
        return new PartTokens(runs.stream().filter(run -> run.tokens() > 0).toList());
    }

    /** Returns how many of a part's tokens of a slice are in its first chunk. */
    public static int early(int tokens) {
        return (tokens + 1) / 2;
    }

    @Override
    public List<Run> ofUnit(TokenBlocks unit) {
        List<Run> ofSequence = of(unit.firstToken(), unit.tokens());
        List<Run> all = new ArrayList<>();
        for (int b = 0; b < unit.sequences(); b++) {
            int firstRow = b * unit.tokens() - unit.firstToken();
            for (Run run : ofSequence) {
                all.add(new Run(firstRow + run.firstHere(), run.first(), run.tokens()));
            }
        }
        return all;
    }

    /**
     * Returns where some of the part's tokens lie in the sequence.
     *
     * @param firstHere number of the first token on this rank
     * @param count tokens from there on
     */
    public List<Run> of(int firstHere, int count) {
        return runs.stream()
                .map(run -> run.within(firstHere, firstHere + count))
                .filter(run -> run.tokens() > 0)
                .toList();
    }

    /**
     * Returns the rows of the states that a retention keeps of a part's first tokens: for each
     * sequence one between slices, and of every run one before each of its blocks of the grid and
     * one behind the last.
     *
     * @param count tokens of whole runs
     */
    public int stateRows(int count, int sequences, int grid) {
        int rows = 1;
        for (Run run : runs) {
            rows += run.firstHere() < count ? run.chunks(grid).blocksPerSequence() + 1 : 0;
        }
        return rows * sequences;
    }
}
