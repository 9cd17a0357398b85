package dev.penstock.cuda.device;

import java.util.List;

/**
 * A named owner of device memory with a limit, a parent and children, nested as the work nests
 * (process, model, step). Closing frees in reverse order of allocation, is idempotent, and throws
 * when a child is still open, showing the tree. Thread-safe.
 */
public interface DeviceScope extends AutoCloseable {
    String name();

    /**
     * Allocates zeroed memory, 64-byte aligned.
     *
     * @param bytes size, greater than 0
     * @throws DeviceException if this scope's or a parent's limit would be exceeded; the message
     *     names the scope, the bytes wanted and the bytes free
     */
    DeviceBuffer allocate(String name, long bytes);

    /**
     * Same as {@link #allocate}, for what links carry: where device memory is not the host's, with
     * pinned host memory beside it ({@link DeviceBuffer#staging}), which is freed with it.
     */
    default DeviceBuffer allocateStaged(String name, long bytes) {
        return allocate(name, bytes);
    }

    /** Whether {@link #allocateStaged} gives other memory than {@link #allocate}. */
    default boolean isStaged() {
        return false;
    }

    /** Allocates a fresh dense tensor of this many rows and columns. */
    default Tensor tensor(String name, DType type, int rows, int columns) {
        return Tensor.of(allocate(name, (long) rows * columns * type.bytes()), type, rows, columns);
    }

    /**
     * Opens a child scope; its bytes count against this scope too.
     *
     * @param limitBytes most bytes that the child may hold at a time, {@code Long.MAX_VALUE} for no
     *     limit of its own
     */
    DeviceScope child(String name, long limitBytes);

    /** The scopes that are open directly below this one, oldest first. */
    default List<DeviceScope> children() {
        return List.of();
    }

    /** Bytes held now by this scope and its children. */
    long liveBytes();

    /** The most bytes ever held at a time. */
    long peakBytes();

    /** Frees all buffers. Throws {@link DeviceException} when a child is still open. */
    @Override
    void close();
}
