package dev.penstock.runtime.model.activations;

import static java.util.Objects.requireNonNull;

import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.Tensor;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Memory for something of one micro-batch, per layer, seen at the size of any smaller one. */
final class MicroBatchSlot {
    private final List<Tensor> largest;
    private final Map<Integer, Tensor> states;
    private final List<DeviceBuffer> buffers;
    private final UnderWay underWay;
    private final Map<Integer, List<Tensor>> byRows = new HashMap<>();

    /**
     * @param largest entry i is of block i of the stage
     * @param states by block, of those with a retention
     * @param room of those that are this slot's alone
     */
    MicroBatchSlot(List<Tensor> largest, Map<Integer, Tensor> states, UnitRooms.Room room) {
        this.states = Map.copyOf(states);
        buffers = room.buffers();
        underWay = room.underWay();
        this.largest = List.copyOf(largest);
    }

    List<DeviceBuffer> buffers() {
        return buffers;
    }

    UnderWay underWay() {
        return underWay;
    }

    /** Returns the states of a block, of the largest micro-batch. */
    Tensor states(int block) {
        return requireNonNull(states.get(block));
    }

    /** Returns the memory of a micro-batch of n rows. */
    List<Tensor> of(int rows) {
        return byRows.computeIfAbsent(
                rows, n -> largest.stream().map(layer -> layer.rows(0, n)).toList());
    }
}
