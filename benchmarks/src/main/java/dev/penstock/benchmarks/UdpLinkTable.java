package dev.penstock.benchmarks;

import dev.penstock.actors.dataplane.aeron.AeronSettings;
import dev.penstock.actors.dataplane.aeron.EmbeddedDriver;
import dev.penstock.actors.dataplane.aeron.UdpSettings;
import dev.penstock.runtime.speed.EndpointLink;
import dev.penstock.runtime.speed.LinkRate;
import dev.penstock.runtime.speed.Repeated;
import java.io.PrintStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import javax.crypto.spec.SecretKeySpec;

/**
 * The data plane over UDP on the loopback interface, with checksums and with seals, compared with a
 * bare Aeron loop with the same datagrams and windows. Driver, sender and receiver share the
 * machine's cores.
 */
final class UdpLinkTable {
    private static final int WARM_UP_ROUNDS = 2;
    private static final int ROUNDS = 7;
    private static final long BYTES_PER_ROUND = 128L << 20;
    private static final List<Integer> MTUS = List.of(65504, 8192, 1408);

    private final PrintStream out;
    private int epoch;

    UdpLinkTable(PrintStream out) {
        this.out = out;
    }

    void run(EmbeddedDriver driver, List<Integer> sizes) {
        out.printf("%nover UDP on loopback, median of %d rounds%n%n", ROUNDS);
        out.printf(
                "%8s %10s %10s %10s %8s %12s %8s%n",
                "mtu", "tensor", "bare GB/s", "CRC GB/s", "ratio", "sealed GB/s", "ratio");
        for (int mtu : MTUS) {
            for (int size : sizes) {
                if (size >= 64 << 10 && (mtu == MTUS.getFirst() || size == 1 << 20)) {
                    measure(driver, mtu, size);
                }
            }
        }
        out.printf(
                "%nCRC: every frame checked, tensors taken by the poller's thread; sealed: AES-256-GCM instead%n");
    }

    private void measure(EmbeddedDriver driver, int mtu, int bytes) {
        UdpSettings udp = UdpSettings.loopback().withMtu(mtu);
        AeronSettings checked =
                AeronSettings.udp(driver.directory(), 2)
                        .withEpoch(++epoch)
                        .withLinks(links -> links.withUdp(udp));
        AeronSettings sealed =
                AeronSettings.udp(driver.directory(), 3)
                        .withEpoch(++epoch)
                        .withLinks(
                                links ->
                                        links.withUdp(udp)
                                                .withKey(new SecretKeySpec(new byte[32], "AES")));
        int count = (int) Math.max(8, BYTES_PER_ROUND / bytes / (mtu < 2000 ? 4 : 1));
        double[] bare = new double[ROUNDS];
        double[] crc = new double[ROUNDS];
        double[] seal = new double[ROUNDS];
        try (Arena arena = Arena.ofShared()) {
            List<MemorySegment> tensors = LinkRate.buffers(arena, bytes);
            List<MemorySegment> slots = LinkRate.buffers(arena, bytes);
            List<MemorySegment> backSlots = LinkRate.buffers(arena, bytes);
            try (BareAeronLink link = BareAeronLink.udp(driver.directory(), udp);
                    EndpointLink plain = new EndpointLink(checked, slots, backSlots);
                    EndpointLink hidden = new EndpointLink(sealed, slots, backSlots)) {
                for (int round = -WARM_UP_ROUNDS; round < ROUNDS; round++) {
                    int at = Math.max(0, round);
                    long pass = (long) round + WARM_UP_ROUNDS;
                    bare[at] = rate(bytes, count, link.transfer(tensors, slots, count));
                    crc[at] = rate(bytes, count, plain.stream(tensors, count, pass));
                    seal[at] = rate(bytes, count, hidden.stream(tensors, count, pass));
                }
            }
        }
        double base = Repeated.median(bare);
        double withCrc = Repeated.median(crc);
        double withSeal = Repeated.median(seal);
        String size = bytes < 1 << 20 ? (bytes >> 10) + " KiB" : (bytes >> 20) + " MiB";
        out.printf(
                "%8d %10s %10.2f %10.2f %8.2f %12.2f %8.2f%n",
                mtu, size, base, withCrc, withCrc / base, withSeal, withSeal / base);
    }

    private static double rate(int bytes, int count, long nanos) {
        return DataPlaneBenchmark.rate(bytes, count, nanos);
    }
}
