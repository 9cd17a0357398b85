package dev.penstock.actors.node;

import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.serialization.WireMessage;
import java.util.Optional;

/**
 * What a node says of itself.
 *
 * @param name for people
 * @param version of the program that the process runs, for people
 * @param rank the only rank that this node was started for; empty if it takes any
 * @param spare whether it waits, warm, for a rank whose process dies
 * @param address where its data plane is reached; empty in a run whose processes all use one media
 *     driver
 */
public record NodeInfo(
        String name,
        long pid,
        String version,
        Optional<Integer> rank,
        boolean spare,
        Optional<PeerAddress> address)
        implements WireMessage {
    /** A node that does not say what it runs. */
    public NodeInfo(
            String name,
            long pid,
            Optional<Integer> rank,
            boolean spare,
            Optional<PeerAddress> address) {
        this(name, pid, "", rank, spare, address);
    }

    /** A node of a run whose processes all use one media driver. */
    public NodeInfo(String name, long pid, Optional<Integer> rank, boolean spare) {
        this(name, pid, rank, spare, Optional.empty());
    }

    /** As {@link #NodeInfo(String, long, Optional, boolean)}, no spare. */
    public NodeInfo(String name, long pid, Optional<Integer> rank) {
        this(name, pid, rank, false);
    }

    /** Names the process: nodes with equal ones live and die together. */
    public String process() {
        return process(name, pid);
    }

    /** The same of a node that has not said who it is. */
    public static String process(String name, long pid) {
        return name + '/' + pid;
    }
}
