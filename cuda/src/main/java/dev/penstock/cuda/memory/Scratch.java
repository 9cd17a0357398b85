package dev.penstock.cuda.memory;

import dev.penstock.cuda.device.DeviceScope;

/**
 * A block of device memory that kernels use while they run. It grows to the largest size ever
 * wanted, so that a steady step allocates nothing. Not thread-safe: one per thread or per use.
 */
public final class Scratch implements AutoCloseable {
    private final DeviceScope parent;
    private final String name;
    private DeviceScope scope;
    private long bytes;
    private long address;

    public Scratch(DeviceScope parent, String name) {
        this.parent = parent;
        this.name = name;
        this.scope = parent.child(name, Long.MAX_VALUE);
    }

    /** Address of at least this many bytes; what they held before is lost. */
    public long reserve(long wanted) {
        if (wanted > bytes) {
            scope.close();
            bytes = 0;
            scope = parent.child(name, Long.MAX_VALUE);
            address = scope.allocate(name, wanted).address();
            bytes = wanted;
        }
        return address;
    }

    @Override
    public void close() {
        scope.close();
    }
}
