package dev.penstock.cuda;

import dev.penstock.cuda.cpu.CpuDevice;
import dev.penstock.cuda.cpu.CpuScope;
import dev.penstock.cuda.cpu.CpuScratch;
import dev.penstock.cuda.cublas.Cublas;
import dev.penstock.cuda.device.CountedKernels;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.Gpus;
import dev.penstock.cuda.device.NativeLibrary;
import dev.penstock.cuda.gpu.GpuDevice;
import dev.penstock.cuda.gpu.GpuProbe;
import dev.penstock.cuda.gpu.GpuScratch;
import dev.penstock.cuda.kernels.ReferenceDevice;
import dev.penstock.cuda.kernels.SilentKernels;
import dev.penstock.cuda.nccl.Nccl;
import dev.penstock.cuda.onednn.OneDnn;
import java.util.List;
import java.util.Optional;

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

    /** Asks the driver for GPUs; never throws for want of one. */
    public static Gpus probeGpus() {
        return GpuProbe.run();
    }

    /**
     * Why the library that these products are made by cannot be used here; empty if it can, or if
     * they need none.
     */
    public static Optional<String> whyNot(DeviceSettings.Gemm gemm) {
        return switch (gemm) {
            case ONEDNN ->
                    OneDnn.probe() instanceof OneDnn.Probe.Missing(String reason)
                            ? Optional.of(reason)
                            : Optional.empty();
            case CUBLAS ->
                    Cublas.probe() instanceof Cublas.Probe.Missing(String reason)
                            ? Optional.of(reason)
                            : Optional.empty();
            case AUTO, JAVA, KERNELS -> Optional.empty();
        };
    }

    /** Looks for the library by which GPUs sum and gather among themselves. */
    public static NativeLibrary nccl() {
        return switch (Nccl.probe()) {
            case Nccl.Probe.Found(Nccl library) ->
                    new NativeLibrary.Found(library.version(), library.file());
            case Nccl.Probe.Missing(String reason) -> new NativeLibrary.Missing(reason);
        };
    }

    /** GPUs that the driver offers. */
    public static List<Gpus.Gpu> gpus() {
        return switch (probeGpus()) {
            case Gpus.Found(var gpus) -> gpus;
            case Gpus.None _ -> List.of();
        };
    }
}
