package dev.penstock.schedules.plan.work;

/**
 * What computes.
 *
 * @param memoryBytes what a plan may use of its memory
 * @param peakFlops FLOP/s of matrix products, on paper
 * @param achieved share of {@code peakFlops} that a training step reaches, above 0, at most 1
 * @param bytesPerSecond of its memory
 */
public record DeviceSpec(
        long memoryBytes, double peakFlops, double achieved, double bytesPerSecond) {
    public DeviceSpec {
        if (memoryBytes < 1 || !(peakFlops > 0) || !(bytesPerSecond > 0)) {
            throw new IllegalArgumentException(
                    "a device needs memory, FLOP/s and a bandwidth above 0, got %d B, %s, %s"
                            .formatted(memoryBytes, peakFlops, bytesPerSecond));
        }
        if (!(achieved > 0 && achieved <= 1)) {
            throw new IllegalArgumentException(
                    "the achieved share of the peak is above 0 and at most 1, got " + achieved);
        }
    }

    /** FLOP/s that it reaches. */
    public double flopsPerSecond() {
        return peakFlops * achieved;
    }
}
