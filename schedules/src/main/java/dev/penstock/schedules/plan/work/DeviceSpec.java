package dev.penstock.schedules.plan.work;

/**
 * What computes.
 *
 * @param memoryBytes what a plan may use of its memory
 * @param peakFlops FLOP/s of matrix products, on paper
 * @param achieved share of {@code peakFlops} that a training step reaches, above 0, at most 1
 * @param bytesPerSecond of its memory
 * @param hostBytesPerSecond between it and the memory of its host, each way
 * @param diskBytesPerSecond between it and a folder, each way
 */
public record DeviceSpec(
        long memoryBytes,
        double peakFlops,
        double achieved,
        double bytesPerSecond,
        double hostBytesPerSecond,
        double diskBytesPerSecond) {
    /** Of a device of which nothing is measured: a copy between memories. */
    public static final double USUAL_HOST_BYTES_PER_SECOND = 4e9;

    /** Of a disk of today. */
    public static final double USUAL_DISK_BYTES_PER_SECOND = 1e9;

    public DeviceSpec {
        if (memoryBytes < 1 || !(peakFlops > 0) || !(bytesPerSecond > 0)) {
            throw new IllegalArgumentException(
                    "a device needs memory, FLOP/s and a bandwidth above 0, got %d B, %s, %s"
                            .formatted(memoryBytes, peakFlops, bytesPerSecond));
        }
        if (!(hostBytesPerSecond > 0) || !(diskBytesPerSecond > 0)) {
            throw new IllegalArgumentException(
                    "a device needs ways to its host and a disk above 0 B/s, got %s, %s"
                            .formatted(hostBytesPerSecond, diskBytesPerSecond));
        }
        if (!(achieved > 0 && achieved <= 1)) {
            throw new IllegalArgumentException(
                    "the achieved share of the peak is above 0 and at most 1, got " + achieved);
        }
    }

    /** One with usual ways to its host and to a disk. */
    public DeviceSpec(long memoryBytes, double peakFlops, double achieved, double bytesPerSecond) {
        this(
                memoryBytes,
                peakFlops,
                achieved,
                bytesPerSecond,
                USUAL_HOST_BYTES_PER_SECOND,
                USUAL_DISK_BYTES_PER_SECOND);
    }

    /** FLOP/s that it reaches. */
    public double flopsPerSecond() {
        return peakFlops * achieved;
    }
}
