package dev.penstock.actors.node;

import dev.penstock.actors.serialization.WireMessage;
import java.util.Optional;

/**
 * What a node says of itself.
 *
 * @param name for people
 * @param rank the only rank that this node was started for; empty if it takes any
 * @param spare whether it waits, warm, for a rank whose process dies
 */
public record NodeInfo(String name, long pid, Optional<Integer> rank, boolean spare)
        implements WireMessage {
    /** A node that is no spare. */
    public NodeInfo(String name, long pid, Optional<Integer> rank) {
        this(name, pid, rank, false);
    }
}
