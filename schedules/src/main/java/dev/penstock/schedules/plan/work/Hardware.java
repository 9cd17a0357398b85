package dev.penstock.schedules.plan.work;

import java.util.List;

/**
 * Nodes with devices, which need not be equal. Devices are numbered node after node in the order of
 * the groups; plans use the first ones.
 *
 * @param network between nodes: latency, and the bandwidth of one node, which its devices share
 */
public record Hardware(String name, List<NodeGroup> groups, Link network) {
    public Hardware {
        groups = List.copyOf(groups);
        if (groups.isEmpty()) {
            throw new IllegalArgumentException("a cluster needs nodes, got none");
        }
    }

    /** All devices. */
    public int devices() {
        return groups.stream().mapToInt(NodeGroup::devices).sum();
    }

    /** Where a device stands. */
    private record Place(NodeGroup group, int groupIndex, int node) {}

    private Place placeOf(int device) {
        int first = 0;
        for (int i = 0; i < groups.size(); i++) {
            NodeGroup group = groups.get(i);
            if (device < first + group.devices()) {
                return new Place(group, i, (device - first) / group.devicesPerNode());
            }
            first += group.devices();
        }
        throw new IllegalArgumentException(
                "%s has %d devices, there is no device %d".formatted(name, devices(), device));
    }

    /** The groups that have devices in [first, end). */
    List<NodeGroup> groupsOf(int first, int end) {
        int low = placeOf(first).groupIndex();
        int high = placeOf(end - 1).groupIndex();
        return groups.subList(low, high + 1);
    }

    /** Whether all devices of [first, end) are in one node. */
    boolean isOneNode(int first, int end) {
        Place low = placeOf(first);
        return low.equals(placeOf(end - 1));
    }

    /** The device for people: {@code a100 node 3 device 2}. */
    String nameOf(int device) {
        Place place = placeOf(device);
        int first = 0;
        for (NodeGroup group : groups.subList(0, place.groupIndex())) {
            first += group.devices();
        }
        String node = place.group().nodes() == 1 ? "" : " node " + place.node();
        String index =
                place.group().devicesPerNode() == 1
                        ? ""
                        : " device " + (device - first) % place.group().devicesPerNode();
        return place.group().name() + node + index;
    }
}
