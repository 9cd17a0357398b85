package dev.penstock.runtime.model.activations;

import dev.penstock.runtime.model.shape.ShardShape;
import java.util.HashMap;
import java.util.Map;

/** Memory for the activations of one unit, seen at the size of any smaller one. */
final class UnitSlot {
    private final UnitActivations largest;
    private final ShardShape shape;
    private final Map<Integer, UnitActivations> byRows = new HashMap<>();

    /**
     * @param largest carved for the largest unit that this slot may hold
     */
    UnitSlot(UnitActivations largest, ShardShape shape) {
        this.largest = largest;
        this.shape = shape;
    }

    /** Returns the memory of a unit of n rows. */
    UnitActivations of(int rows) {
        return byRows.computeIfAbsent(rows, n -> largest.first(n, shape.ownRows(n)));
    }
}
