package dev.penstock.cuda;

import dev.penstock.cuda.cpu.CpuDevice;
import dev.penstock.cuda.cpu.CpuScope;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.kernels.ReferenceDevice;

/** Opens devices: the only class that sees every kind. */
public final class Devices {
    private Devices() {}

    /**
     * Opens a device; the caller closes it and calls its kernels from one thread at a time.
     *
     * @throws DeviceException if the settings ask for what this machine or release does not have
     */
    public static Device open(DeviceSettings settings) {
        return switch (settings.kind()) {
            case AUTO, CPU -> new CpuDevice(settings);
            case REFERENCE -> new ReferenceDevice(memory("reference", settings));
            case CUDA ->
                    throw new DeviceException(
                            "opening a device: expected kind auto or cpu, got cuda; GPU kernels are not in this release");
        };
    }

    private static CpuScope memory(String name, DeviceSettings settings) {
        return CpuScope.root(name, settings.memoryLimitBytes(), settings.traceAllocations());
    }
}
