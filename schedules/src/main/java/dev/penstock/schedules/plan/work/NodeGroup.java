package dev.penstock.schedules.plan.work;

/**
 * Equal nodes.
 *
 * @param name for people
 * @param nodes how many
 * @param devicesPerNode devices of each
 * @param inside between two devices of a node; each device has its own
 */
public record NodeGroup(
        String name, int nodes, int devicesPerNode, DeviceSpec device, Link inside) {
    public NodeGroup {
        if (nodes < 1 || devicesPerNode < 1) {
            throw new IllegalArgumentException(
                    "%s needs 1 node and 1 device per node or more, got %d and %d"
                            .formatted(name, nodes, devicesPerNode));
        }
    }

    int devices() {
        return nodes * devicesPerNode;
    }
}
