package dev.penstock.actors.rank;

import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.mirror.MirrorLayout;
import dev.penstock.actors.serialization.WireMessage;
import java.util.List;

/**
 * The places of all ranks of a run in an epoch, which a rank needs to open its links.
 *
 * @param epoch the epoch of the run
 * @param mirrors which rank holds whose mirror
 * @param homes for each rank, the lowest rank that lives on the same node
 * @param link the directory of the media driver; empty if the process knows it or it has not
 *     changed
 * @param peers for each rank, the address of its process; empty if all use this process's media
 *     driver
 */
public record EpochLinks(
        int epoch, MirrorLayout mirrors, List<Integer> homes, String link, List<PeerAddress> peers)
        implements WireMessage {
    public EpochLinks {
        homes = List.copyOf(homes);
        peers = List.copyOf(peers);
    }
}
