package dev.penstock.actors.rank;

import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.mirror.MirrorLayout;
import dev.penstock.actors.serialization.WireMessage;
import java.util.List;

/**
 * How a rank comes to live in a process.
 *
 * @param epoch of the run at that time
 * @param start where its parameters come from
 * @param mirrors who holds whose mirror
 * @param homes by rank, the lowest rank that lives on the same node
 * @param link where the media driver is; empty if the process knows
 * @param peers where the processes of all ranks are reached, by rank; empty if all use this
 *     process's media driver
 */
public record RankAssignment(
        int rank,
        int epoch,
        StateSource start,
        MirrorLayout mirrors,
        List<Integer> homes,
        String link,
        List<PeerAddress> peers)
        implements WireMessage {
    public RankAssignment {
        homes = List.copyOf(homes);
        peers = List.copyOf(peers);
    }
}
