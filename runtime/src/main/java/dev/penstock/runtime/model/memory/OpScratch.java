package dev.penstock.runtime.model.memory;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;

/**
 * Memory that the stages of a rank use in turns, since a rank runs one op at a time: each stage
 * cuts tensors of its own from the beginning of the same buffer. An op finds there what any other
 * op left, so this is only for what an op writes before it reads it.
 */
public final class OpScratch implements DeviceScope {
    private static final int LINE_BYTES = 64;

    private final DeviceBuffer buffer;
    private long usedBytes;

    /**
     * @param buffer of the rank, as large as the stage that needs most; owned by somebody else
     */
    public OpScratch(DeviceBuffer buffer) {
        this.buffer = buffer;
    }

    /** Returns one without memory, of which only {@link #usedBytes} is of interest. */
    public static OpScratch counting() {
        return new OpScratch(new CountingScope.CountedBuffer("scratch", Long.MAX_VALUE));
    }

    /** Returns the bytes that this stage has cut so far. */
    public long usedBytes() {
        return usedBytes;
    }

    @Override
    public String name() {
        return buffer.name();
    }

    @Override
    public Tensor tensor(String name, DType type, int rows, int columns) {
        long bytes = (long) rows * columns * type.bytes();
        if (bytes > buffer.bytes() - usedBytes) {
            throw new IllegalStateException(
                    "%s: expected room in %,d bytes of scratch, of which %,d are taken, got %,d"
                            .formatted(name, buffer.bytes(), usedBytes, bytes));
        }
        var tensor = new Tensor(buffer, usedBytes, type, rows, columns, columns);
        usedBytes += (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
        return tensor;
    }

    @Override
    public DeviceBuffer allocate(String bufferName, long bytes) {
        throw new UnsupportedOperationException("scratch of ops is cut into tensors");
    }

    @Override
    public DeviceScope child(String childName, long limitBytes) {
        throw new UnsupportedOperationException("scratch of ops is not divided into parts");
    }

    /** Nothing: the buffer counts where it was allocated. */
    @Override
    public long liveBytes() {
        return 0;
    }

    @Override
    public long peakBytes() {
        return 0;
    }

    @Override
    public void close() {}
}
