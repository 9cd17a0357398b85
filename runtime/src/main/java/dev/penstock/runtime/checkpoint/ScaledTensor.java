package dev.penstock.runtime.checkpoint;

import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.kernels.HostMatrix;
import dev.penstock.runtime.safetensors.StoredType;
import dev.penstock.runtime.safetensors.TensorSource;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.List;

/**
 * Integers with a scale for each row, or codes with one for each block, about to be written as
 * floats: rounding or coding these again gives the same bytes. Rows are widened as they are
 * written.
 *
 * @param memory the rows of a piece, whole; the last block may be longer than what is left of it
 */
record ScaledTensor(String name, List<Integer> shape, Tensor memory) implements TensorSource {
    private static final ValueLayout.OfFloat FLOAT =
            ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    @Override
    public StoredType type() {
        return StoredType.F32;
    }

    @Override
    public Reading open() {
        return new Reading() {
            private final HostMatrix integers = HostMatrix.of(memory);
            private float[] row = new float[0];
            private int next;
            private int given;

            @Override
            public MemorySegment next(int bytes, MemorySegment buffer) {
                MemorySegment part = buffer.asSlice(0, bytes);
                for (long at = 0; at < bytes; ) {
                    if (given == row.length) {
                        row = integers.row(next++);
                        given = 0;
                    }
                    int count = (int) Math.min(row.length - given, (bytes - at) / Float.BYTES);
                    MemorySegment.copy(row, given, part, FLOAT, at, count);
                    given += count;
                    at += (long) count * Float.BYTES;
                }
                return part;
            }
        };
    }
}
