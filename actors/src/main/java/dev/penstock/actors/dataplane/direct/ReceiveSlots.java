package dev.penstock.actors.dataplane.direct;

import dev.penstock.actors.dataplane.Inbound;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.function.IntFunction;
import java.util.stream.IntStream;

/** The slots of a channel that ends here. The rank's thread only. */
public final class ReceiveSlots {
    private final List<DeviceBuffer> slots;

    /**
     * Allocates them.
     *
     * @param names by number, for leak reports, such as {@code block 0 of rank 3}
     * @param bytes of the longest tensor
     */
    public ReceiveSlots(DeviceScope scope, IntFunction<String> names, int count, long bytes) {
        this.slots =
                IntStream.range(0, count)
                        .mapToObj(i -> scope.allocateStaged(names.apply(i), bytes))
                        .toList();
    }

    /** For the link: {@link Inbound#slots}. */
    public List<MemorySegment> segments() {
        return slots.stream().map(DeviceBuffer::staging).toList();
    }

    /**
     * What arrived, and was taken just now, as a row of elements; kernels asked for from now on see
     * it. The slot may be released once such kernels are done.
     */
    public Tensor bring(int slot, DType type, int columns) {
        Tensor arrived = tensor(slot, type, columns);
        arrived.buffer().beginToDevice(arrived.bytes());
        arrived.buffer().kernelsAwaitCopy();
        return arrived;
    }

    /** What was brought before. */
    public Tensor tensor(int slot, DType type, int columns) {
        return Tensor.of(slots.get(slot), type, 1, columns);
    }
}
