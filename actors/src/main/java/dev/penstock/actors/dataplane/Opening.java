package dev.penstock.actors.dataplane;

import java.util.List;
import java.util.Map;

/**
 * What an endpoint is opened with.
 *
 * @param rank the rank that sends and receives here; its inbox is derived from it
 * @param epoch of the run; frames of another are refused. All ranks that exchange tensors open in
 *     the same one, and each opens an epoch at most once
 * @param inbound the channels that end here, each at most once
 * @param outbound the channels that begin here, each at most once
 * @param peers addresses by rank; a rank that is not named uses this process's media driver
 */
public record Opening(
        int rank,
        int epoch,
        List<Inbound> inbound,
        List<Outbound> outbound,
        Map<Integer, PeerAddress> peers) {
    public Opening {
        inbound = List.copyOf(inbound);
        outbound = List.copyOf(outbound);
        peers = Map.copyOf(peers);
    }
}
