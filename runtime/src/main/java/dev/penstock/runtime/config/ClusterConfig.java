package dev.penstock.runtime.config;

import dev.penstock.schedules.plan.Cluster;
import dev.penstock.schedules.plan.Device;
import dev.penstock.schedules.plan.Link;
import dev.penstock.schedules.plan.NodeGroup;
import dev.penstock.schedules.plan.TrainingBytes;
import java.util.List;

/**
 * A cluster as a file describes it. Made by {@link ClusterLoader}.
 *
 * @param name for people
 * @param nodes in the order in which a plan uses them
 * @param bytes what training holds per parameter
 */
public record ClusterConfig(
        String name, List<NodesSection> nodes, NetworkSection network, TrainingBytesSection bytes) {
    public ClusterConfig {
        nodes = List.copyOf(nodes);
    }

    /** The cluster as the planner sees it. */
    public Cluster cluster() {
        return new Cluster(
                name,
                nodes.stream().map(ClusterConfig::group).toList(),
                new Link(network.latency().toNanos(), network.bandwidth().bytes()));
    }

    /** Bytes of training state. */
    public TrainingBytes trainingBytes() {
        return new TrainingBytes(
                bytes.parameter(), bytes.gradient(), bytes.optimizer(), bytes.activation());
    }

    private static NodeGroup group(NodesSection nodes) {
        return new NodeGroup(
                nodes.name(),
                nodes.count(),
                nodes.devices(),
                new Device(
                        nodes.memory().bytes() - nodes.reserved().bytes(),
                        nodes.peakTflops() * 1e12,
                        nodes.achieved(),
                        nodes.memoryBandwidth().bytes()),
                new Link(nodes.linkLatency().toNanos(), nodes.linkBandwidth().bytes()));
    }
}
