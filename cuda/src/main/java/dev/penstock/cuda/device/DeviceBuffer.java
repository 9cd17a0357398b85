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
}
