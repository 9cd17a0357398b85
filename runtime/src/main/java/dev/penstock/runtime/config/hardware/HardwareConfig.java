package dev.penstock.runtime.config.hardware;

import dev.penstock.schedules.plan.work.DeviceSpec;
import dev.penstock.schedules.plan.work.Hardware;
import dev.penstock.schedules.plan.work.Link;
import dev.penstock.schedules.plan.work.NodeGroup;
import dev.penstock.schedules.plan.work.TrainingBytes;
import java.util.List;

/**
 * A cluster as a file describes it. Made by {@link HardwareLoader}.
 *
 * @param name for people
 * @param nodes in the order in which a plan uses them
 * @param bytes what training holds per parameter
 */
public record HardwareConfig(
        String name, List<NodesSection> nodes, NetworkSection network, TrainingBytesSection bytes) {
    public HardwareConfig {
        nodes = List.copyOf(nodes);
    }

    /** The cluster as the planner sees it. */
    public Hardware cluster() {
        return new Hardware(
                name,
                nodes.stream().map(HardwareConfig::group).toList(),
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
                new DeviceSpec(
                        nodes.memory().bytes() - nodes.reserved().bytes(),
                        nodes.peakTflops() * 1e12,
                        nodes.achieved(),
                        nodes.memoryBandwidth().bytes(),
                        nodes.hostBandwidth().bytes(),
                        nodes.diskBandwidth().bytes()),
                new Link(nodes.linkLatency().toNanos(), nodes.linkBandwidth().bytes()));
    }
}
