package dev.penstock.runtime.launch;

import dev.penstock.actors.spi.DeviceFactory;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.config.Bytes;
import dev.penstock.runtime.config.DeviceKind;
import dev.penstock.runtime.config.DeviceSection;

/** The devices that a configuration asks for. */
final class ConfiguredDevices {
    private ConfiguredDevices() {}

    /**
     * Opens ranks' devices; cores are shared among the ranks unless the configuration says
     * otherwise.
     */
    static DeviceFactory of(DeviceSection section, int ranks) {
        int cores = Runtime.getRuntime().availableProcessors();
        var settings =
                new DeviceSettings(
                        kindOf(section.kind()),
                        section.threads().orElse(Math.max(1, cores / ranks)),
                        switch (section.gemm()) {
                            case AUTO -> DeviceSettings.Gemm.AUTO;
                            case ONEDNN -> DeviceSettings.Gemm.ONEDNN;
                            case JAVA -> DeviceSettings.Gemm.JAVA;
                            case CUBLAS -> DeviceSettings.Gemm.CUBLAS;
                            case KERNELS -> DeviceSettings.Gemm.KERNELS;
                        },
                        section.vectorBits().bits(),
                        section.kind().gpu().orElse(0),
                        section.memoryLimit().map(Bytes::bytes).orElse(Long.MAX_VALUE),
                        false);
        if (section.kind().isCuda() && section.kind().gpu().isEmpty()) {
            int gpus = Math.max(1, Devices.gpus());
            return rank -> Devices.open(settings.withGpu(rank % gpus));
        }
        return _ -> Devices.open(settings);
    }

    private static DeviceSettings.Kind kindOf(DeviceKind kind) {
        if (kind.isCuda()) {
            return DeviceSettings.Kind.CUDA;
        }
        return kind.equals(DeviceKind.CPU) ? DeviceSettings.Kind.CPU : DeviceSettings.Kind.AUTO;
    }
}
