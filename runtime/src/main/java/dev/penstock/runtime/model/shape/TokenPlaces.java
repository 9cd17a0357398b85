package dev.penstock.runtime.model.shape;

import dev.penstock.cuda.device.TokenBlocks;
import java.util.List;

/** The places of this rank's tokens in their sequences, or in their documents. */
@FunctionalInterface
public interface TokenPlaces {
    /**
     * Returns the places of a unit's rows: runs whose first rows are counted in the unit, in the
     * order in which gradients of places are added up.
     */
    List<PartTokens.Run> ofUnit(TokenBlocks unit);
}
