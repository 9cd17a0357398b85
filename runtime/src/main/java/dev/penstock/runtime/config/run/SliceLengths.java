package dev.penstock.runtime.config.run;

import java.util.List;

/** How a configuration says how long the token slices of a sequence are. */
public sealed interface SliceLengths {
    /** Lengths that follow from the number of slices. */
    enum Rule implements SliceLengths {
        /** The same number of tokens, up to one. */
        EQUAL,
        /** The same work: a late slice attends to more tokens, so it has fewer of its own. */
        BALANCED
    }

    /**
     * Lengths that somebody chose.
     *
     * @param tokens of each slice, first slice first
     */
    record Given(List<Integer> tokens) implements SliceLengths {
        public Given {
            tokens = List.copyOf(tokens);
        }
    }
}
