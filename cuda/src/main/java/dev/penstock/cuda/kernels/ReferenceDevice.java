package dev.penstock.cuda.kernels;

import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Kernels;
import java.util.Optional;

/**
 * A device of plain scalar kernels over host memory: slow, and the truth others are compared to.
 */
public final class ReferenceDevice implements Device {
    private final DeviceScope memory;
    private final Kernels kernels = new CheckedKernels(new ReferenceKernels());
    private final Kernels sums = new CheckedKernels(new ReferenceKernels());

    /**
     * @param memory host memory, closed with this device
     */
    public ReferenceDevice(DeviceScope memory) {
        this.memory = memory;
    }

    @Override
    public String name() {
        return "reference (1 thread, scalar)";
    }

    @Override
    public String fingerprint() {
        return "reference-1";
    }

    @Override
    public DeviceScope memory() {
        return memory;
    }

    @Override
    public Kernels kernels() {
        return kernels;
    }

    @Override
    public Optional<Kernels> sumsBesideOps() {
        return Optional.of(sums);
    }

    @Override
    public void close() {
        memory.close();
    }
}
