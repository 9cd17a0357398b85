package dev.penstock.runtime.memory;

import dev.penstock.runtime.config.run.DeviceSection;
import dev.penstock.runtime.links.NominalCosts;

/**
 * How fast a rank computes and moves data; all per second, above 0.
 *
 * @param flops of matrix products, as a training step reaches them
 * @param hostBytes between the rank's device and its host's memory, each way
 * @param diskBytes between the rank and the folder of {@code device.swap}, each way
 * @param updateBytes through an update of what is swapped: read from its files or written there
 */
public record Rates(double flops, double hostBytes, double diskBytes, double updateBytes) {
    public Rates {
        if (!(flops > 0 && hostBytes > 0 && diskBytes > 0 && updateBytes > 0)) {
            throw new IllegalArgumentException(
                    "expected rates above 0, got %s, %s, %s, %s"
                            .formatted(flops, hostBytes, diskBytes, updateBytes));
        }
    }

    /** Rates of a machine whose updates are as fast as its disk. */
    public Rates(double flops, double hostBytes, double diskBytes) {
        this(flops, hostBytes, diskBytes, diskBytes);
    }

    /**
     * Returns rates that are the same on every machine: what is decided by them depends on the
     * configuration alone. Ways take their share of computing as {@code device.offload-intensity}
     * and {@code device.swap-intensity} say.
     */
    public static Rates nominal(DeviceSection device) {
        double flops = NominalCosts.FLOPS_PER_SECOND;
        return new Rates(flops, flops / device.offloadIntensity(), flops / device.swapIntensity());
    }

    /** Returns what moves a second of the activations that leave a device. */
    double activationBytes(DeviceSection device) {
        return device.offload().isPresent() ? Math.min(hostBytes, diskBytes) : hostBytes;
    }
}
