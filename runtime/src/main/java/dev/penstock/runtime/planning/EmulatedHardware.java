package dev.penstock.runtime.planning;

import dev.penstock.actors.dataplane.emulated.EmulatedLink;
import dev.penstock.actors.dataplane.emulated.EmulatedLinks;
import dev.penstock.schedules.plan.work.Hardware;
import dev.penstock.schedules.plan.work.Link;
import dev.penstock.schedules.plan.work.NodeGroup;

/** A cluster whose links are those that a configuration emulates. */
final class EmulatedHardware {
    private EmulatedHardware() {}

    /**
     * Returns the cluster with the usual emulated link in place of its own; links of ranks with a
     * site in common stay those inside a node.
     */
    static Hardware of(Hardware cluster, EmulatedLinks links) {
        EmulatedLink usual = links.usual();
        if (usual.equals(EmulatedLink.NONE)) {
            return cluster;
        }
        return new Hardware(
                cluster.name(),
                cluster.groups().stream()
                        .map(group -> links.sites().isEmpty() ? inside(group, usual) : group)
                        .toList(),
                link(cluster.network(), usual));
    }

    private static NodeGroup inside(NodeGroup group, EmulatedLink usual) {
        return new NodeGroup(
                group.name(),
                group.nodes(),
                group.devicesPerNode(),
                group.device(),
                link(group.inside(), usual));
    }

    private static Link link(Link real, EmulatedLink usual) {
        double rate = usual.bytesPerSecond() * (1 - usual.loss());
        return new Link(
                usual.latencyNanos(), Double.isInfinite(rate) ? real.bytesPerSecond() : rate);
    }
}
