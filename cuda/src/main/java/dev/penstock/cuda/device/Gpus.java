package dev.penstock.cuda.device;

import java.util.List;

/** What came of looking for GPUs. */
public sealed interface Gpus {
    /** GPUs that the driver offers, at least one. */
    record Found(List<Gpu> gpus) implements Gpus {
        public Found {
            gpus = List.copyOf(gpus);
        }
    }

    /** None, and why: one sentence. */
    record None(String reason) implements Gpus {}

    /**
     * A GPU.
     *
     * @param index as the driver counts
     * @param name such as {@code NVIDIA H200}
     * @param computeCapability such as {@code 9.0}
     * @param uuid which no other GPU has, whatever the driver counts
     */
    record Gpu(int index, String name, long memoryBytes, String computeCapability, String uuid) {
        /** The part of the compute capability before the point. */
        public int majorCapability() {
            return Integer.parseInt(computeCapability.substring(0, computeCapability.indexOf('.')));
        }
    }
}
