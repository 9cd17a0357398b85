package dev.penstock.runtime.model.shape;

import java.util.List;

/** Where tokens that are here lie in their sequences. */
@FunctionalInterface
public interface TokenPlaces {
    /**
     * @param firstHere number of the first token here
     * @param count tokens from there on
     */
    List<PartTokens.Run> of(int firstHere, int count);
}
