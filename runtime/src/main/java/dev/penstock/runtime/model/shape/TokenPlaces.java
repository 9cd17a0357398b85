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

    /** Returns whether tokens have a type; otherwise all have the first. */
    default boolean typed() {
        return false;
    }

    /** Returns the runs of a unit's rows whose tokens have a type, counted as {@link #ofUnit}. */
    default List<PartTokens.Run> ofType(TokenBlocks unit, int type) {
        return type == 0 ? ofUnit(unit) : List.of();
    }
}
