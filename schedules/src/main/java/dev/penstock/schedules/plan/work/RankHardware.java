package dev.penstock.schedules.plan.work;

import java.util.List;
import java.util.stream.IntStream;

/**
 * What one pipeline rank works with: of all its devices and ways the slowest and smallest, since
 * everybody waits for these.
 *
 * @param flopsPerSecond that a device reaches
 * @param bytesPerSecond of a device's memory
 * @param memoryBytes of a device
 * @param hostBytesPerSecond between a device and its host's memory, each way
 * @param diskBytesPerSecond between a device and a folder, each way
 * @param tensorLink between the shards of a replica
 * @param dataLink between replicas, one shard's share
 */
public record RankHardware(
        double flopsPerSecond,
        double bytesPerSecond,
        long memoryBytes,
        double hostBytesPerSecond,
        double diskBytesPerSecond,
        Link tensorLink,
        Link dataLink) {

    public static RankHardware of(Hardware cluster, Layout layout, int rank) {
        int first = layout.firstDevice(rank);
        int end = first + layout.devicesOf(rank);
        List<NodeGroup> groups = cluster.groupsOf(first, end);
        Link inside = slowestInside(groups);
        return new RankHardware(
                groups.stream().mapToDouble(g -> g.device().flopsPerSecond()).min().orElseThrow(),
                groups.stream().mapToDouble(g -> g.device().bytesPerSecond()).min().orElseThrow(),
                groups.stream().mapToLong(g -> g.device().memoryBytes()).min().orElseThrow(),
                groups.stream()
                        .mapToDouble(g -> g.device().hostBytesPerSecond())
                        .min()
                        .orElseThrow(),
                groups.stream()
                        .mapToDouble(g -> g.device().diskBytesPerSecond())
                        .min()
                        .orElseThrow(),
                areShardsInsideNodes(cluster, layout, rank) ? inside : cluster.network(),
                // the ring of replicas of every shard that a node has crosses its network once
                cluster.isOneNode(first, end)
                        ? inside
                        : cluster.network()
                                .sharedBy(Math.min(layout.shardsOf(rank), mostOnANode(groups))));
    }

    /** Plans keep them there; a configuration may cut as it likes. */
    private static boolean areShardsInsideNodes(Hardware cluster, Layout layout, int rank) {
        int shards = layout.shardsOf(rank);
        int first = layout.firstDevice(rank);
        return IntStream.range(0, layout.data())
                .map(replica -> first + replica * shards)
                .allMatch(shard -> cluster.isOneNode(shard, shard + shards));
    }

    /**
     * The way from one rank to another, one sender's share: of ranks with different numbers of
     * shards, as many send as the one with fewer has.
     */
    static Link hop(Hardware cluster, Layout layout, int from, int to) {
        int senders = Math.min(layout.devicesOf(from), layout.devicesOf(to));
        int first = layout.firstDevice(Math.min(from, to));
        int high = Math.max(from, to);
        int end = layout.firstDevice(high) + layout.devicesOf(high);
        List<NodeGroup> groups = cluster.groupsOf(first, end);
        if (cluster.isOneNode(first, end)) {
            return slowestInside(groups);
        }
        return cluster.network().sharedBy(Math.min(mostOnANode(groups), senders));
    }

    private static int mostOnANode(List<NodeGroup> groups) {
        return groups.stream().mapToInt(NodeGroup::devicesPerNode).max().orElse(1);
    }

    /** A device that has the least memory of the rank's. */
    public static String smallestDevice(Hardware cluster, Layout layout, int rank) {
        long least = of(cluster, layout, rank).memoryBytes();
        int device = layout.firstDevice(rank);
        while (cluster.groupsOf(device, device + 1).getFirst().device().memoryBytes() != least) {
            device++;
        }
        return cluster.nameOf(device);
    }

    private static Link slowestInside(List<NodeGroup> groups) {
        return new Link(
                groups.stream().mapToLong(g -> g.inside().latencyNanos()).max().orElseThrow(),
                groups.stream().mapToDouble(g -> g.inside().bytesPerSecond()).min().orElseThrow());
    }
}
