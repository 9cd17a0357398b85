package dev.penstock.runtime.model;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;

/**
 * Scratch of one block's attention over sequences whose tokens lie on several ranks.
 *
 * @param travelling keys and values, or their gradients, side by side: one run of rows for each
 *     part, which begins on a 64-byte line
 * @param whole queries, keys and values of the micro-batch {@code [B*T, 3d]}
 * @param dWhole their gradients
 */
record ContextBuffers(Tensor travelling, Tensor whole, Tensor dWhole) {
    private static final int LINE_ELEMENTS = 16;

    static ContextBuffers allocate(
            DeviceScope scope, ShardShape shape, BatchShape part, int parts) {
        int columns = shape.headColumns();
        int travelling = Math.multiplyExact(parts, elements(part.microBatchRows(), columns));
        int rows = Math.multiplyExact(parts, part.microBatchRows());
        return new ContextBuffers(
                scope.tensor("keys and values of all parts", DType.F32, 1, travelling),
                scope.tensor("queries, keys and values", DType.F32, rows, 3 * columns),
                scope.tensor(
                        "gradient of queries, keys and values of all parts",
                        DType.F32,
                        rows,
                        3 * columns));
    }

    /** Elements from one part's keys and values to the next's. */
    private static int elements(int rows, int columns) {
        int even = Math.multiplyExact(rows, 2 * columns);
        return (even + LINE_ELEMENTS - 1) / LINE_ELEMENTS * LINE_ELEMENTS;
    }

    /** The keys and values of a part. */
    Tensor part(int part, int rows, int columns) {
        return new Tensor(
                travelling.buffer(),
                travelling.offsetBytes() + (long) part * elements(rows, columns) * Float.BYTES,
                DType.F32,
                rows,
                2 * columns,
                2 * columns);
    }
}
