package dev.penstock.actors.rank;

import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.mirror.MirrorLayout;
import dev.penstock.actors.serialization.WireMessage;
import java.util.List;

/**
 * Where all ranks of a run are in an epoch: what a rank opens its links with.
 *
 * @param epoch of the run
 * @param mirrors who holds whose mirror
 * @param homes by rank, the lowest rank that lives on the same node
 * @param link where the media driver is; empty if the process knows, or if it is where it was
 * @param peers where the processes of all ranks are reached, by rank; empty if all use this
 *     process's media driver
 */
public record EpochLinks(
        int epoch, MirrorLayout mirrors, List<Integer> homes, String link, List<PeerAddress> peers)
        implements WireMessage {
    public EpochLinks {
        homes = List.copyOf(homes);
        peers = List.copyOf(peers);
    }
}
