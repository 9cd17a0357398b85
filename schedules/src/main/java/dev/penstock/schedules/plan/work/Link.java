package dev.penstock.schedules.plan.work;

/**
 * A way between devices.
 *
 * @param latencyNanos until the first byte is there
 * @param bytesPerSecond each way
 */
public record Link(long latencyNanos, double bytesPerSecond) {
    public Link {
        if (latencyNanos < 0 || !(bytesPerSecond > 0)) {
            throw new IllegalArgumentException(
                    "a link has a latency of 0 or more and a bandwidth above 0, got %d ns and %s B/s"
                            .formatted(latencyNanos, bytesPerSecond));
        }
    }

    /** What each of {@code users} gets that send at a time. */
    Link sharedBy(int users) {
        return new Link(latencyNanos, bytesPerSecond / users);
    }

    /** How long so many bytes keep it busy. */
    public double nanos(double bytes) {
        return 1e9 * bytes / bytesPerSecond;
    }
}
