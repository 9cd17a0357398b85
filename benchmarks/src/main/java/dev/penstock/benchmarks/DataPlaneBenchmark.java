package dev.penstock.benchmarks;

import dev.penstock.actors.dataplane.aeron.AeronSettings;
import dev.penstock.actors.dataplane.aeron.DriverSettings;
import dev.penstock.actors.dataplane.aeron.EmbeddedDriver;
import dev.penstock.runtime.speed.EndpointLink;
import dev.penstock.runtime.speed.LinkRate;
import dev.penstock.runtime.speed.Repeated;
import java.io.PrintStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;

/**
 * The data plane compared with a bare Aeron loop, in the same run: GB/s of one link and the time of
 * a round trip, for tensors of 4 KiB to 16 MiB. The contenders alternate in short rounds, so that
 * other load on the machine affects all of them; each figure is the median of the rounds.
 */
public final class DataPlaneBenchmark {
    private static final int TERM = 8 << 20;
    private static final int WARM_UP_ROUNDS = 2;
    private static final int ROUNDS = 9;
    private static final long BYTES_PER_ROUND = 384L << 20;
    private static final int TRIPS_PER_ROUND = 200;
    private static final List<Integer> SIZES =
            List.of(4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20);

    private final PrintStream out;

    private DataPlaneBenchmark(PrintStream out) {
        this.out = out;
    }

    /** Accepts sizes in KiB as arguments. */
    public static void main(String[] arguments) {
        PrintStream out = System.out;
        List<Integer> sizes =
                arguments.length == 0
                        ? SIZES
                        : Arrays.stream(arguments).map(kib -> Integer.parseInt(kib) << 10).toList();
        try (EmbeddedDriver driver =
                EmbeddedDriver.start(DriverSettings.inSharedMemory("benchmark", TERM, 16))) {
            new DataPlaneBenchmark(out).run(driver, sizes);
            new UdpLinkTable(out).run(driver, sizes);
        }
    }

    private void run(EmbeddedDriver driver, List<Integer> sizes) {
        out.printf(
                "one link, embedded driver, terms of %d MiB, median of %d rounds%n%n",
                TERM >> 20, ROUNDS);
        out.printf(
                "%10s %12s %12s %8s %12s %14s%n",
                "tensor", "bare GB/s", "plane GB/s", "ratio", "thread GB/s", "round trip us");
        for (int i = 0; i < sizes.size(); i++) {
            measure(driver, sizes.get(i), i);
        }
        out.printf(
                "%nbare: tryClaim and copy on two threads; plane: Endpoint, tensors taken by the poller's thread;%nthread: Endpoint, tensors taken by a parked thread of the receiving rank, as in a pipeline%n");
    }

    private void measure(EmbeddedDriver driver, int bytes, int index) {
        AeronSettings adaptive =
                AeronSettings.ipc(driver.directory(), 1).withTermLength(TERM).withEpoch(index);
        int count = (int) Math.max(8, BYTES_PER_ROUND / bytes / (bytes < 64 << 10 ? 8 : 1));
        double[] bare = new double[ROUNDS];
        double[] plane = new double[ROUNDS];
        double[] thread = new double[ROUNDS];
        double[] trip = new double[ROUNDS];
        try (Arena arena = Arena.ofShared()) {
            List<MemorySegment> tensors = LinkRate.buffers(arena, bytes);
            List<MemorySegment> slots = LinkRate.buffers(arena, bytes);
            List<MemorySegment> backSlots = LinkRate.buffers(arena, bytes);
            try (BareAeronLink link =
                            BareAeronLink.ipc(driver.directory(), TERM, adaptive.mtuBytes());
                    EndpointLink joined = new EndpointLink(adaptive, slots, backSlots)) {
                for (int round = -WARM_UP_ROUNDS; round < ROUNDS; round++) {
                    int at = Math.max(0, round);
                    long pass = 3L * (round + WARM_UP_ROUNDS);
                    bare[at] = rate(bytes, count, link.transfer(tensors, slots, count));
                    plane[at] = rate(bytes, count, joined.stream(tensors, count, pass));
                    thread[at] = rate(bytes, count, joined.transfer(tensors, count, pass + 1));
                    long nanos = joined.roundTrips(tensors.getFirst(), TRIPS_PER_ROUND, pass + 2);
                    trip[at] = nanos / 1e3 / TRIPS_PER_ROUND;
                }
            }
        }
        print(
                bytes,
                Repeated.median(bare),
                Repeated.median(plane),
                Repeated.median(thread),
                Repeated.median(trip));
    }

    private void print(int bytes, double bare, double plane, double thread, double trip) {
        String size = bytes < 1 << 20 ? (bytes >> 10) + " KiB" : (bytes >> 20) + " MiB";
        out.printf(
                "%10s %12.2f %12.2f %8.2f %12.2f %14.1f%n",
                size, bare, plane, plane / bare, thread, trip);
    }

    static double rate(int bytes, int count, long nanos) {
        return (double) bytes * count / nanos;
    }
}
