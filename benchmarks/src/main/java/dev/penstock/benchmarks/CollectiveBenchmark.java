package dev.penstock.benchmarks;

import dev.penstock.actors.collective.CollectiveForm;
import dev.penstock.actors.dataplane.aeron.AeronDataPlane;
import dev.penstock.actors.dataplane.aeron.AeronSettings;
import dev.penstock.actors.dataplane.aeron.DriverSettings;
import dev.penstock.actors.dataplane.aeron.EmbeddedDriver;
import dev.penstock.runtime.speed.EndpointLink;
import dev.penstock.runtime.speed.LinkRate;
import dev.penstock.runtime.speed.Repeated;
import java.io.PrintStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Sums and gathers of 1, 16 and 64 MiB among 2 and 4 members: in one process compared with a plain
 * memory copy, and over the data plane, directly and round a ring, compared with one of its own
 * links, all in the same run. A rate is S (N-1)/N bytes of a tensor of S per phase over the time it
 * took, whatever the form sends: more GB/s means less time.
 */
public final class CollectiveBenchmark {
    private static final int TERM = 8 << 20;
    private static final int ROUNDS = 7;
    private static final long BYTES_PER_ROUND = 128L << 20;
    private static final List<Long> SIZES = List.of(1L << 20, 16L << 20, 64L << 20);

    private final PrintStream out;
    private int epoch;

    private CollectiveBenchmark(PrintStream out) {
        this.out = out;
    }

    /** Takes no arguments. */
    public static void main(String[] arguments) {
        var benchmark = new CollectiveBenchmark(System.out);
        try (EmbeddedDriver driver =
                EmbeddedDriver.start(DriverSettings.inSharedMemory("collectives", TERM, 16))) {
            benchmark.header("in one process, in shared memory", "memcpy");
            for (long bytes : SIZES) {
                benchmark.measure(bytes, null, CollectiveForm.NEVER, memcpy(bytes));
            }
            double link = link(driver);
            benchmark.overDataPlane(driver, "directly", CollectiveForm.NEVER, link);
            benchmark.overDataPlane(driver, "round a ring", 0, link);
        }
    }

    private void overDataPlane(
            EmbeddedDriver driver, String form, long ringFromBytes, double link) {
        header("over the data plane, " + form, "link");
        for (long bytes : SIZES) {
            AeronSettings settings = AeronSettings.ipc(driver.directory(), 2).withTermLength(TERM);
            try (AeronDataPlane plane = AeronDataPlane.start(settings)) {
                measure(bytes, plane, ringFromBytes, link);
            }
        }
    }

    private void header(String where, String beside) {
        out.printf(
                "%n%s, GB/s of a member (ratio to %s), median of %d rounds%n",
                where, beside, ROUNDS);
        out.printf(
                "%8s %8s %8s %18s %18s %18s%n",
                "tensor", "members", beside, "all-reduce", "reduce-scatter", "all-gather");
    }

    private void measure(
            long bytes, @Nullable AeronDataPlane plane, long ringFromBytes, double beside) {
        for (int members : List.of(2, 4)) {
            try (var group = new CollectiveMembers(members, bytes, ++epoch, plane, ringFromBytes)) {
                out.printf("%5d MiB %8d %8.2f", bytes >> 20, members, beside);
                for (CollectiveMembers.Work work : CollectiveMembers.Work.values()) {
                    double rate = rate(group, work, members, bytes);
                    out.printf(" %9.2f (%6.2f)", rate, rate / beside);
                }
                out.println();
            }
        }
    }

    private static double rate(
            CollectiveMembers group, CollectiveMembers.Work work, int members, long bytes) {
        int count = (int) Math.max(2, BYTES_PER_ROUND / bytes);
        int phases = work == CollectiveMembers.Work.ALL_REDUCE ? 2 : 1;
        double sent = (double) phases * bytes * (members - 1) / members * count;
        double[] rates = new double[ROUNDS];
        group.run(work, count);
        for (int round = 0; round < ROUNDS; round++) {
            rates[round] = sent / group.run(work, count);
        }
        return Repeated.median(rates);
    }

    private static double memcpy(long bytes) {
        int count = (int) Math.max(2, BYTES_PER_ROUND / bytes);
        double[] rates = new double[ROUNDS];
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment from = arena.allocate(bytes, 64).fill((byte) 1);
            MemorySegment to = arena.allocate(bytes, 64).fill((byte) 2);
            for (int round = 0; round < ROUNDS; round++) {
                long begun = System.nanoTime();
                for (int i = 0; i < count; i++) {
                    to.copyFrom(from);
                }
                rates[round] = (double) bytes * count / (System.nanoTime() - begun);
            }
        }
        return Repeated.median(rates);
    }

    /** The rate of a link that carries blocks as large as the collectives'. */
    private static double link(EmbeddedDriver driver) {
        int bytes = 1 << 20;
        int count = (int) Math.max(8, 2 * BYTES_PER_ROUND / bytes);
        AeronSettings settings = AeronSettings.ipc(driver.directory(), 1).withTermLength(TERM);
        double[] rates = new double[ROUNDS];
        try (Arena arena = Arena.ofShared()) {
            List<MemorySegment> tensors = LinkRate.buffers(arena, bytes);
            List<MemorySegment> slots = LinkRate.buffers(arena, bytes);
            List<MemorySegment> back = LinkRate.buffers(arena, bytes);
            try (var joined = new EndpointLink(settings, slots, back)) {
                joined.transfer(tensors, count, 0);
                for (int round = 0; round < ROUNDS; round++) {
                    rates[round] =
                            DataPlaneBenchmark.rate(
                                    bytes, count, joined.transfer(tensors, count, round + 1));
                }
            }
        }
        return Repeated.median(rates);
    }
}
