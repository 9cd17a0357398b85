package dev.penstock.actors.dataplane;

/**
 * A channel on its sending side.
 *
 * @param toRank the receiver's rank
 * @param credits as in the receiver's {@link Inbound}
 */
public record Outbound(ChannelKey channel, int toRank, int credits) {}
