package dev.penstock.actors.cluster;

import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.serialization.WireMessage;
import java.util.List;

/**
 * What a node says of itself.
 *
 * @param name for people
 * @param address of its actor system, {@code akka://penstock@host:port}; unique in the cluster
 * @param host whose shared memory it sees: nodes with equal ones exchange tensors through it
 * @param uid of its membership, like no other's
 * @param version of the program that it runs, for people
 * @param devices what a rank would open there, for people
 * @param memoryBytes what ranks may hold there together
 * @param cores that ranks share there
 */
public record NodeOffer(
        String name,
        String address,
        String host,
        long pid,
        long uid,
        String version,
        List<String> devices,
        long memoryBytes,
        int cores)
        implements WireMessage {
    public NodeOffer {
        devices = List.copyOf(devices);
    }

    /** As {@link NodeInfo#process} of its nodes of a run says. */
    public String process() {
        return NodeInfo.process(name, pid, uid);
    }

    /** {@code worker-1 (127.0.0.1:2552, pid 4711)}. */
    public String text() {
        return "%s (%s, pid %d)".formatted(name, place(), pid);
    }

    /** {@code 127.0.0.1:2552}. */
    public String place() {
        return address.substring(address.indexOf('@') + 1);
    }
}
