package dev.penstock.runtime.model.shape;

import java.util.List;

/** The places of this rank's tokens in their sequences. */
@FunctionalInterface
public interface TokenPlaces {
    /**
     * Returns the places of a run of tokens.
     *
     * @param firstHere number of the first token on this rank
     * @param count tokens from there on
     */
    List<PartTokens.Run> of(int firstHere, int count);
}
