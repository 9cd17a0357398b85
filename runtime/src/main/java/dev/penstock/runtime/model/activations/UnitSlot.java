package dev.penstock.runtime.model.activations;

import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.runtime.model.shape.ShardShape;
import java.util.HashMap;
import java.util.Map;

/** Memory for the activations of one unit, seen at the size of any smaller one. */
final class UnitSlot {
    private final UnitActivations largest;
    private final ShardShape shape;
    private final DeviceBuffer buffer;
    private final UnderWay underWay;
    private final Map<Integer, UnitActivations> byRows = new HashMap<>();

    /**
     * @param largest carved for the largest unit that this slot may hold
     * @param room of which it was carved
     */
    UnitSlot(UnitActivations largest, ShardShape shape, UnitRooms.Room room) {
        buffer = room.buffers().getFirst();
        underWay = room.underWay();
        this.largest = largest;
        this.shape = shape;
    }

    DeviceBuffer buffer() {
        return buffer;
    }

    UnderWay underWay() {
        return underWay;
    }

    /** Returns the memory of a unit of n rows. */
    UnitActivations of(int rows) {
        return byRows.computeIfAbsent(rows, n -> largest.first(n, shape.ownRows(n)));
    }
}
