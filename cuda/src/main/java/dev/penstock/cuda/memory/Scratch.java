package dev.penstock.cuda.memory;

import static java.util.Objects.requireNonNull;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import org.jspecify.annotations.Nullable;

/**
 * A block of device memory that kernels use while they run. It grows to the largest size ever
 * wanted, so that a steady step allocates nothing. Not thread-safe: one per thread or per use.
 */
public final class Scratch implements AutoCloseable {
    private final DeviceScope parent;
    private final String name;
    private DeviceScope scope;
    private long bytes;
    private @Nullable DeviceBuffer buffer;
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
            buffer = scope.allocate(name, wanted);
            address = buffer.address();
            bytes = wanted;
        }
        return address;
    }

    /** Same as a dense matrix. */
    public Tensor matrix(DType type, int rows, int columns) {
        reserve((long) type.bytes() * rows * columns);
        return new Tensor(requireNonNull(buffer), 0, type, rows, columns, columns);
    }

    @Override
    public void close() {
        scope.close();
    }
}
