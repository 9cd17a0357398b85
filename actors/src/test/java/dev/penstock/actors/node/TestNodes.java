package dev.penstock.actors.node;

import dev.penstock.actors.dataplane.PeerAddress;
import java.util.Optional;

/**
 * Nodes that say no more than a test needs; all processes use one media driver unless it says so.
 */
public final class TestNodes {
    private TestNodes() {}

    /** A node that was started for one rank. */
    public static NodeInfo of(String name, long pid, int rank) {
        return new NodeInfo(name, pid, 0, "", Optional.of(rank), false, Optional.empty());
    }

    /** The same, which says where its data plane is. */
    public static NodeInfo of(String name, long pid, int rank, PeerAddress address) {
        return new NodeInfo(name, pid, 0, "", Optional.of(rank), false, Optional.of(address));
    }

    /** A node that takes any rank. */
    public static NodeInfo ofAny(String name, long pid) {
        return new NodeInfo(name, pid, 0, "", Optional.empty(), false, Optional.empty());
    }

    /** A node that waits for a rank whose process dies. */
    public static NodeInfo spare(String name, long pid) {
        return new NodeInfo(name, pid, 0, "", Optional.empty(), true, Optional.empty());
    }
}
