package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.ShardShape;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Blocks of keys and values that travel around the ring of context parts, each {@code [B*T, 2d]} of
 * a part's tokens; one block of the model at a time.
 *
 * @param keyValues the one being read, and the one being received
 * @param gradients the same for their gradients
 * @param added what this part adds to a gradient while that is being received; null between two
 *     parts, where none is received before it is sent
 */
public record RingBuffers(List<Tensor> keyValues, List<Tensor> gradients, @Nullable Tensor added) {

    public static RingBuffers allocate(
            DeviceScope scope, ShardShape shape, BatchShape part, int parts) {
        return new RingBuffers(
                two(scope, "keys and values on their way", shape, part),
                two(scope, "gradients of keys and values on their way", shape, part),
                parts == 2
                        ? null
                        : block(scope, "gradients of others' keys and values", shape, part));
    }

    private static List<Tensor> two(
            DeviceScope scope, String name, ShardShape shape, BatchShape part) {
        return IntStream.range(0, 2)
                .mapToObj(i -> block(scope, name + ", " + i, shape, part))
                .toList();
    }

    private static Tensor block(DeviceScope scope, String name, ShardShape shape, BatchShape part) {
        return scope.tensor(name, DType.F32, part.microBatchRows(), 2 * shape.keyColumns());
    }

    /** Returns the first rows of all buffers. */
    RingBuffers first(int rows) {
        return new RingBuffers(
                keyValues.stream().map(block -> block.rows(0, rows)).toList(),
                gradients.stream().map(block -> block.rows(0, rows)).toList(),
                added == null ? null : added.rows(0, rows));
    }
}
