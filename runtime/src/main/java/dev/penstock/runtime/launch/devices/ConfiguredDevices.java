package dev.penstock.runtime.launch.devices;

import dev.penstock.actors.spi.DeviceFactory;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.config.reading.Bytes;
import dev.penstock.runtime.config.run.DeviceKind;
import dev.penstock.runtime.config.run.DeviceSection;
import java.util.Optional;

/** The devices that a configuration asks for. */
public final class ConfiguredDevices {
    private ConfiguredDevices() {}

    /**
     * Opens devices of this kind, all else as where nothing is configured; cores are shared among
     * the ranks.
     */
    public static DeviceFactory of(DeviceKind kind, int ranks) {
        DeviceSettings settings =
                DeviceSettings.DEFAULTS.withKind(kindOf(kind)).withThreads(coresOfEach(ranks));
        return kind.isCuda()
                ? new RankGpus(kind, settings, ranks, Optional.empty())
                : _ -> Devices.open(settings);
    }

    /**
     * Opens ranks' devices; cores are shared among the ranks unless the configuration says
     * otherwise.
     */
    public static DeviceFactory of(DeviceSection section, int ranks) {
        DeviceSettings settings = settings(section, ranks);
        return _ -> Devices.open(settings);
    }

    /**
     * Same as {@link #of(DeviceSection, int)} where GPUs are asked for.
     *
     * @param lost those that the run has lost
     */
    public static RankGpus gpus(DeviceSection section, int ranks, LostGpus lost) {
        return new RankGpus(section.kind(), settings(section, ranks), ranks, Optional.of(lost));
    }

    /** Of the device of any rank, on a machine with as many cores as this one. */
    static DeviceSettings settings(DeviceSection section, int ranks) {
        return new DeviceSettings(
                kindOf(section.kind()),
                section.threads().orElse(coresOfEach(ranks)),
                gemmOf(section.gemm()),
                section.vectorBits().bits(),
                section.kind().gpu().orElse(0),
                section.memoryLimit().map(Bytes::bytes).orElse(Long.MAX_VALUE),
                false,
                section.graphs());
    }

    /** Why this machine cannot multiply by the library that is asked for; empty if it can. */
    public static Optional<String> whyNot(DeviceSection.Gemm gemm) {
        return Devices.whyNot(gemmOf(gemm));
    }

    private static DeviceSettings.Gemm gemmOf(DeviceSection.Gemm gemm) {
        return switch (gemm) {
            case AUTO -> DeviceSettings.Gemm.AUTO;
            case ONEDNN -> DeviceSettings.Gemm.ONEDNN;
            case JAVA -> DeviceSettings.Gemm.JAVA;
            case CUBLAS -> DeviceSettings.Gemm.CUBLAS;
            case KERNELS -> DeviceSettings.Gemm.KERNELS;
        };
    }

    private static int coresOfEach(int ranks) {
        return Math.max(1, Runtime.getRuntime().availableProcessors() / ranks);
    }

    private static DeviceSettings.Kind kindOf(DeviceKind kind) {
        if (kind.isCuda()) {
            return DeviceSettings.Kind.CUDA;
        }
        if (kind.equals(DeviceKind.REFERENCE)) {
            return DeviceSettings.Kind.REFERENCE;
        }
        return kind.equals(DeviceKind.CPU) ? DeviceSettings.Kind.CPU : DeviceSettings.Kind.AUTO;
    }
}
