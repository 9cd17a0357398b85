package dev.penstock.runtime.model.activations;

import dev.penstock.cuda.device.Tensor;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Memory for something of one micro-batch, per layer, seen at the size of any smaller one. */
final class MicroBatchSlot {
    private final List<Tensor> largest;
    private final Map<Integer, List<Tensor>> byRows = new HashMap<>();

    /**
     * @param largest entry i is of block i of the stage
     */
    MicroBatchSlot(List<Tensor> largest) {
        this.largest = List.copyOf(largest);
    }

    /** Returns the memory of a micro-batch of n rows. */
    List<Tensor> of(int rows) {
        return byRows.computeIfAbsent(
                rows, n -> largest.stream().map(layer -> layer.rows(0, n)).toList());
    }
}
