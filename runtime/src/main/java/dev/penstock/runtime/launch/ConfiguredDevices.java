package dev.penstock.runtime.launch;

import dev.penstock.actors.spi.DeviceFactory;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.config.Bytes;
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
                        switch (section.kind()) {
                            case AUTO -> DeviceSettings.Kind.AUTO;
                            case CPU -> DeviceSettings.Kind.CPU;
                        },
                        section.threads().orElse(Math.max(1, cores / ranks)),
                        switch (section.gemm()) {
                            case AUTO -> DeviceSettings.Gemm.AUTO;
                            case ONEDNN -> DeviceSettings.Gemm.ONEDNN;
                            case JAVA -> DeviceSettings.Gemm.JAVA;
                        },
                        section.vectorBits().bits(),
                        0,
                        section.memoryLimit().map(Bytes::bytes).orElse(Long.MAX_VALUE),
                        false);
        return _ -> Devices.open(settings);
    }
}
