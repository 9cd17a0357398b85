package dev.penstock.cuda;

import dev.penstock.cuda.cpu.CpuDevice;
import dev.penstock.cuda.cpu.CpuScope;
import dev.penstock.cuda.cpu.CpuScratch;
import dev.penstock.cuda.device.CountedKernels;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.gpu.GpuDevice;
import dev.penstock.cuda.gpu.GpuProbe;
import dev.penstock.cuda.gpu.GpuScratch;
import dev.penstock.cuda.kernels.ReferenceDevice;
import dev.penstock.cuda.kernels.SilentKernels;
import java.util.List;

/** Opens devices: the only class that sees every kind. */
public final class Devices {
    private Devices() {}

    /**
     * Opens a device; the caller closes it and calls its kernels from one thread at a time. {@code
     * AUTO} means the CPU: the kernels of the GPU have run on an emulated one only.
     *
     * @throws DeviceException if the settings ask for what this machine or release does not have
     */
    public static Device open(DeviceSettings settings) {
        return switch (settings.kind()) {
            case AUTO, CPU -> new CpuDevice(settings);
            case REFERENCE ->
                    new ReferenceDevice(
                            CpuScope.root(
                                    "reference",
                                    settings.memoryLimitBytes(),
                                    settings.traceAllocations()));
            case CUDA -> GpuDevice.open(settings);
        };
    }

    /**
     * Counts what the kernels of such a device would hold for themselves, with the libraries of
     * this machine; opens no device. Whether there could be one is not asked.
     */
    public static CountedKernels counting(DeviceSettings settings) {
        return switch (settings.kind()) {
            case AUTO, CPU -> CpuScratch.of(settings);
            case REFERENCE -> new SilentKernels();
            case CUDA -> GpuScratch.of(settings);
        };
    }

    /** Looks for everything that a device could use; loads libraries, opens no device. */
    public static DeviceSurvey survey() {
        return DeviceSurvey.ofThisMachine();
    }

    /** GPUs that the driver offers. */
    public static List<GpuProbe.Gpu> gpus() {
        return switch (GpuProbe.run()) {
            case GpuProbe.Found(var gpus) -> gpus;
            case GpuProbe.None _ -> List.of();
        };
    }
}
