package dev.penstock.schedules.plan.work;

/** Times of collectives among N devices that are joined by equal links. */
final class Collectives {
    private Collectives() {}

    /** Everybody gets all of what is divided, or the sum of its part: (N-1)/N of the bytes. */
    static double oneWayNanos(Link link, int devices, double bytes) {
        return devices == 1
                ? 0
                : link.nanos(bytes * (devices - 1) / devices) + hops(devices) * link.latencyNanos();
    }

    /** A reduce-scatter and a gather. */
    static double allReduceNanos(Link link, int devices, double bytes) {
        return 2 * oneWayNanos(link, devices, bytes);
    }

    private static int hops(int devices) {
        return 32 - Integer.numberOfLeadingZeros(devices - 1);
    }
}
