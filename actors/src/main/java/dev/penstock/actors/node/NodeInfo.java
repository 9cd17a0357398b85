package dev.penstock.actors.node;

import dev.penstock.actors.serialization.WireMessage;
import java.util.Optional;

/**
 * What a node says of itself.
 *
 * @param name for people
 * @param rank the only rank that this node was started for; empty if it takes any
 */
public record NodeInfo(String name, long pid, Optional<Integer> rank) implements WireMessage {}
