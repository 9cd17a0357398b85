package dev.penstock.actors.dataplane;

import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * A channel on its receiving side.
 *
 * @param fromRank the sender's rank
 * @param credits how many tensors the sender may have under way and not taken: the proved in-flight
 *     count
 * @param slots destination memory, one tensor each: at least as many as the receiver holds between
 *     take and release and the sender still sends meanwhile, of which credits are enough. Owned by
 *     the caller, who frees it after the endpoint was closed
 */
public record Inbound(ChannelKey channel, int fromRank, int credits, List<MemorySegment> slots) {
    public Inbound {
        slots = List.copyOf(slots);
    }
}
