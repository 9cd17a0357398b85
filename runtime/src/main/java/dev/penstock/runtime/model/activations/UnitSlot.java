package dev.penstock.runtime.model.activations;

import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.ShardShape;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/** Memory for the activations of one unit, seen at the size of each slice. */
final class UnitSlot {
    private final List<UnitActivations> bySlice;

    private UnitSlot(List<UnitActivations> bySlice) {
        this.bySlice = bySlice;
    }

    /**
     * @param largest carved for the largest unit that this slot may hold; views for larger slices
     *     are never requested
     */
    static UnitSlot of(
            UnitActivations largest, ShardShape shape, BatchShape batch, int largestRows) {
        Map<Integer, UnitActivations> byRows = new HashMap<>();
        return new UnitSlot(
                IntStream.range(0, batch.slices())
                        .map(batch::rows)
                        .map(rows -> Math.min(rows, largestRows))
                        .mapToObj(
                                rows ->
                                        byRows.computeIfAbsent(
                                                rows, n -> largest.first(n, shape.ownRows(n))))
                        .toList());
    }

    UnitActivations at(int slice) {
        return bySlice.get(slice);
    }
}
