package dev.penstock.actors.supervisor;

import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.mirror.MirrorLayout;
import dev.penstock.actors.rank.EpochLinks;
import dev.penstock.actors.rank.RankLocation;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * The locations of all ranks as they are told in an epoch. What a rank has been told before is not
 * told again: in a run of a thousand ranks, of which one has moved, a thousand orders would
 * otherwise name a thousand addresses each.
 *
 * <pre>
 *   location of rank   0   1   2   3
 *   changed in epoch   1   5   1   3       a rank that is known to have entered epoch 3 is told of 1
 * </pre>
 *
 * A rank may have heard of later epochs than it is known to have entered. What it is told then
 * overwrites all that has changed since the earlier one, so it ends with the same.
 */
final class ToldLocations {
    /** Before all epochs. */
    private static final int NEVER = 0;

    private final RankTable ranks;
    private final Links links;
    private final List<RankLocation> locations = new ArrayList<>();
    private final int[] changedIn;
    private int settledIn = NEVER;

    ToldLocations(RankTable ranks, Links links) {
        this.ranks = ranks;
        this.links = links;
        this.changedIn = new int[ranks.size()];
    }

    /**
     * Where all ranks are in this epoch. All must be told the same, so what changes later in the
     * epoch is told in the next one.
     */
    void settle(MirrorLayout mirrors) {
        int epoch = ranks.epoch();
        if (settledIn == epoch) {
            return;
        }
        settledIn = epoch;
        List<PeerAddress> addresses = links.now(ranks.addresses());
        List<Integer> homes = ranks.homes();
        for (int rank = 0; rank < ranks.size(); rank++) {
            Optional<PeerAddress> address =
                    addresses.isEmpty() ? Optional.empty() : Optional.of(addresses.get(rank));
            var location = new RankLocation(rank, homes.get(rank), mirrors.holderOf(rank), address);
            if (rank == locations.size()) {
                locations.add(location);
                changedIn[rank] = epoch;
            } else if (!location.equals(locations.get(rank))) {
                locations.set(rank, location);
                changedIn[rank] = epoch;
            }
        }
    }

    /** What a rank that lives needs to open its links in this epoch. */
    EpochLinks linksOf(int rank, List<Integer> fills) {
        return links(rank, fills, ranks.lastEntered(rank).orElse(NEVER));
    }

    /** What a rank that is born knows: everything, whatever was heard of it. */
    EpochLinks linksAtBirth(int rank, List<Integer> fills) {
        return links(rank, fills, NEVER);
    }

    private EpochLinks links(int rank, List<Integer> fills, int known) {
        List<RankLocation> changed =
                locations.stream().filter(location -> changedIn[location.rank()] > known).toList();
        String link = links.of(ranks.node(rank).orElseThrow());
        return new EpochLinks(ranks.epoch(), changed, fills, link);
    }
}
