package dev.penstock.actors.node;

import dev.penstock.actors.serialization.WireMessage;

/**
 * A rank that lives on a node.
 *
 * @param birthEpoch in which it was hosted
 */
public record HostedRank(int rank, int birthEpoch) implements WireMessage {}
