package dev.penstock.schedules.plan;

import dev.penstock.schedules.plan.work.DeviceSpec;
import dev.penstock.schedules.plan.work.Hardware;
import dev.penstock.schedules.plan.work.Link;
import dev.penstock.schedules.plan.work.ModelShape;
import dev.penstock.schedules.plan.work.NodeGroup;
import java.util.List;
import java.util.stream.IntStream;

/** Clusters and models of tests. */
public final class Clusters {
    static final long GIB = 1L << 30;

    static final ModelShape GPT2 = new ModelShape(12, 768, 12, 50_257, 1_024, true);

    private Clusters() {}

    /** 384 nodes of 8 A100 with 80 GB, NVSwitch inside, 8 x 200 Gbit/s between. */
    public static Hardware a100(int nodes) {
        var device = new DeviceSpec(76L * GIB, 312e12, 0.55, 2.0e12);
        var group = new NodeGroup("a100", nodes, 8, device, new Link(3_000, 250e9));
        return new Hardware(nodes + " x 8 A100", List.of(group), new Link(5_000, 200e9));
    }

    public static Hardware laptops(long... memories) {
        var groups =
                IntStream.range(0, memories.length)
                        .mapToObj(
                                i ->
                                        new NodeGroup(
                                                "laptop-" + (char) ('a' + i),
                                                1,
                                                1,
                                                new DeviceSpec(
                                                        memories[i], (1 + i) * 2e11, 0.5, 20e9),
                                                new Link(1_000, 10e9)))
                        .toList();
        return new Hardware("laptops", groups, new Link(200_000, 1.1e8));
    }
}
