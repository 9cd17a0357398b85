package dev.penstock.runtime.checkpoint;

import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.safetensors.StoredType;
import dev.penstock.runtime.safetensors.TensorSource;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * A tensor about to be written, in memory that the host cannot address: it is copied piece by piece
 * as it is written.
 *
 * @param memory dense; its first elements are the tensor's, and rows that pad a table may follow
 */
record DeviceTensor(String name, StoredType type, List<Integer> shape, Tensor memory)
        implements TensorSource {
    @Override
    public Reading open() {
        return new Reading() {
            private long at = memory.offsetBytes();

            @Override
            public MemorySegment next(int bytes, MemorySegment buffer) {
                MemorySegment part = buffer.asSlice(0, bytes);
                memory.buffer().read(at, part);
                at += bytes;
                return part;
            }
        };
    }
}
