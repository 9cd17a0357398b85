package dev.penstock.cuda.device;

import java.lang.foreign.MemorySegment;

/**
 * A block of device memory, owned by the {@link DeviceScope} that allocated it. 64-byte aligned,
 * zero when fresh. Safe to use from any thread as long as users do not overlap.
 */
public interface DeviceBuffer {
    /** The name given at allocation; errors and leak reports show it. */
    String name();

    /** Size in bytes. */
    long bytes();

    /**
     * The absolute address on the device.
     *
     * @throws DeviceException if the buffer was freed
     */
    long address();

    /**
     * Whether the host can address the memory, so that {@link #segment} shows it. Elsewhere the
     * host gets and gives bytes by copies: {@link #contents}, {@link #read}, {@link #write}.
     */
    default boolean isHostMemory() {
        return true;
    }

    /**
     * The memory as the host sees it; only where it {@linkplain #isHostMemory can}. Waits for
     * kernels that were asked for before.
     *
     * @throws DeviceException if the buffer was freed or the host cannot address it
     */
    MemorySegment segment();

    /**
     * What is in the memory when the kernels asked for so far are done: the memory itself where the
     * host can address it, otherwise a copy that is the caller's. Waits for it; to be read only.
     *
     * @param offset of the first byte
     * @param bytes how many; where they are copied, they are in memory twice
     * @throws DeviceException if the buffer was freed, or if the device fails meanwhile
     */
    default MemorySegment contents(long offset, long bytes) {
        return segment().asSlice(offset, bytes);
    }

    /**
     * Copies bytes to memory of the host, of any kind and length, when the kernels asked for so far
     * are done; waits for that. Any thread may call it.
     *
     * @param offset of the first byte here
     * @param target is filled
     * @throws DeviceException if the buffer was freed, or if the device fails meanwhile
     */
    default void read(long offset, MemorySegment target) {
        MemorySegment.copy(segment(), offset, target, 0, target.byteSize());
    }

    /**
     * Copies bytes from memory of the host, of any kind and length, which is the caller's again
     * when this returns. Kernels asked for so far do not see the bytes, later ones do. Need not
     * wait for kernels. Any thread may call it.
     *
     * @param offset of the first byte here
     * @throws DeviceException if the buffer was freed, or if the device fails; that may also show
     *     later, at the next wait
     */
    default void write(long offset, MemorySegment source) {
        MemorySegment.copy(source, 0, segment(), offset, source.byteSize());
    }

    /**
     * Same as {@link #write}, for I32 numbers by which kernels find rows of a table, such as
     * tokens: kernels check them first, and do so without the device where this keeps a copy for
     * them.
     */
    default void writeIndices(long offset, MemorySegment source) {
        write(offset, source);
    }

    /**
     * Host memory that links read and write: this buffer's own where the host works on it anyway;
     * of a {@linkplain DeviceScope#allocateStaged staged} buffer as many bytes of pinned memory,
     * which copies that run beside kernels take to the device and back.
     *
     * @throws DeviceException if the buffer was freed
     */
    default MemorySegment staging() {
        return segment();
    }

    /**
     * Whether {@link #staging} is other memory than the buffer's own, so that copies are needed.
     */
    default boolean isStaged() {
        return false;
    }

    /**
     * Starts to copy the first bytes to {@link #staging}, once the kernels asked for so far are
     * done. Until {@link #isCopied} the buffer may be read only.
     */
    default void beginToHost(long bytes) {}

    /**
     * Starts to copy the first bytes from {@link #staging}, once the kernels asked for so far are
     * done. The host leaves them alone until {@link #isCopied}, kernels until {@link
     * #kernelsAwaitCopy}.
     */
    default void beginToDevice(long bytes) {}

    /** Kernels asked for from now on see what the copy begun last brings. Does not wait itself. */
    default void kernelsAwaitCopy() {}

    /**
     * Whether the copy begun last is complete. Never waits.
     *
     * @throws DeviceException if it failed
     */
    default boolean isCopied() {
        return true;
    }

    /**
     * Whether {@link #beginCopyTo} brings what is here to another buffer: staged memory of devices
     * of this process that see each other's memory.
     */
    default boolean reaches(DeviceBuffer target) {
        return false;
    }

    /**
     * Starts to copy the first bytes to another buffer without the host, once the kernels asked for
     * here so far are done and those that {@linkplain #lastUsed used the other one last}. Until
     * {@link #isCopied} this buffer may be read only and the other one not at all; whichever of
     * them is freed waits for the copy. Called by this buffer's thread.
     *
     * @param target that this buffer {@link #reaches}
     * @throws DeviceException if it does not, or if the device refuses
     */
    default void beginCopyTo(DeviceBuffer target, long bytes) {
        throw new DeviceException(
                "copying '%s' to '%s': expected staged memory of devices that reach each other"
                        .formatted(name(), target.name()));
    }

    /** Kernels asked for so far are the last that use this buffer before another is copied here. */
    default void lastUsed() {}
}
