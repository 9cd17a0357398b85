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
     * The memory as the host sees it, for copies into and out of frames; only on devices whose
     * memory the host can address. Waits for kernels that were asked for before.
     *
     * @throws DeviceException if the buffer was freed or the host cannot address it
     */
    MemorySegment segment();

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
}
