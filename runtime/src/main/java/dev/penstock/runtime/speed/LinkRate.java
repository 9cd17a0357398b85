package dev.penstock.runtime.speed;

import dev.penstock.actors.dataplane.aeron.AeronSettings;
import dev.penstock.actors.dataplane.aeron.DriverSettings;
import dev.penstock.actors.dataplane.aeron.EmbeddedDriver;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * What a tensor at the boundary of two stages takes over Aeron, from a rank to the next one on this
 * machine: the time of a single one, and the rate of many.
 *
 * @param bytes of the tensor
 * @param bytesPerSecond of many one behind the other, each taken by a waiting thread
 * @param microseconds of one, from its offer until the other side has taken it
 */
public record LinkRate(int bytes, double bytesPerSecond, double microseconds) {
    private static final int TERM = 8 << 20;
    private static final int BUFFERS = 8;
    private static final int LEAST_ROUNDS = 2;
    private static final long BYTES_PER_ROUND = 32L << 20;
    private static final int TRIPS_PER_ROUND = 20;

    /**
     * Measures tensors of these sizes one after the other, in several rounds of which the best
     * counts: other load of the machine weighs least on it.
     *
     * @param nanos about how long each is measured
     */
    static List<LinkRate> of(List<Integer> sizes, long nanos) {
        try (EmbeddedDriver driver =
                EmbeddedDriver.start(DriverSettings.inSharedMemory("speed", TERM, 4))) {
            List<LinkRate> rates = new ArrayList<>();
            for (int i = 0; i < sizes.size(); i++) {
                rates.add(of(driver, sizes.get(i), i, nanos));
            }
            return rates;
        }
    }

    private static LinkRate of(EmbeddedDriver driver, int bytes, int epoch, long nanos) {
        AeronSettings settings =
                AeronSettings.ipc(driver.directory(), 1).withTermLength(TERM).withEpoch(epoch);
        int count = Math.clamp(BYTES_PER_ROUND / bytes, 8, 1_000);
        double rate = 0;
        double trip = Double.MAX_VALUE;
        try (Arena arena = Arena.ofShared()) {
            List<MemorySegment> tensors = buffers(arena, bytes);
            try (var link =
                    new EndpointLink(settings, buffers(arena, bytes), buffers(arena, bytes))) {
                long start = System.nanoTime();
                for (long round = 0;
                        round < LEAST_ROUNDS || System.nanoTime() - start < nanos;
                        round++) {
                    long sent = link.transfer(tensors, count, 2 * round);
                    rate = Math.max(rate, 1e9 * bytes * count / sent);
                    long there =
                            link.roundTrips(tensors.getFirst(), TRIPS_PER_ROUND, 2 * round + 1);
                    trip = Math.min(trip, there / 1e3 / TRIPS_PER_ROUND / 2);
                }
            }
        }
        return new LinkRate(bytes, rate, trip);
    }

    /** Tensors to send or to receive into: enough for a link to be never without one. */
    public static List<MemorySegment> buffers(Arena arena, int bytes) {
        List<MemorySegment> buffers = new ArrayList<>();
        for (int i = 0; i < BUFFERS; i++) {
            buffers.add(arena.allocate(bytes, 64).fill((byte) i));
        }
        return buffers;
    }
}
