package dev.penstock.actors.supervisor;

import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.mirror.MirrorLayout;
import dev.penstock.actors.rank.EpochLinks;
import dev.penstock.actors.rank.LocationDigests;
import dev.penstock.actors.rank.RankLocation;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The locations of all ranks as they are told in an epoch. What a rank holds is not told again: in
 * a run of a thousand ranks, of which one has moved, a thousand orders would otherwise name a
 * thousand addresses each.
 *
 * <p>A rank says what it holds, by digests, when it prepares. No supervisor has to remember what it
 * told whom, so one that takes a run up tells no more than any other. Until the rank leaves the
 * epoch, what it holds can only become what is told in this epoch, so an order that comes late or
 * twice leads to the same.
 */
final class ToldLocations {
    /** Before all epochs. */
    private static final int NEVER = 0;

    private final RankTable ranks;
    private final Links links;
    private List<RankLocation> locations = List.of();
    private LocationDigests digests = LocationDigests.NONE;
    private int settledIn = NEVER;

    ToldLocations(RankTable ranks, Links links) {
        this.ranks = ranks;
        this.links = links;
    }

    /**
     * Where all ranks are in this epoch. All must be told the same, so what changes later in the
     * epoch is told in the next one.
     */
    void settle(MirrorLayout mirrors) {
        if (settledIn == ranks.epoch()) {
            return;
        }
        settledIn = ranks.epoch();
        Map<Integer, PeerAddress> addresses = links.now(ranks.addresses());
        List<Integer> homes = ranks.homes();
        List<RankLocation> now = new ArrayList<>();
        for (int rank = 0; rank < ranks.size(); rank++) {
            now.add(
                    new RankLocation(
                            rank,
                            homes.get(rank),
                            mirrors.holderOf(rank),
                            Optional.ofNullable(addresses.get(rank))));
        }
        digests = LocationDigests.of(now);
        locations = List.copyOf(now);
    }

    /** What a rank that lives needs to open its links in this epoch. */
    EpochLinks linksOf(int rank, List<Integer> fills) {
        LocationDigests held = ranks.heldLocations(rank);
        return links(
                rank,
                fills,
                locations.stream().filter(each -> digests.mayDiffer(held, each.rank())).toList());
    }

    /** What a rank that is born knows: everything, whatever was heard of it. */
    EpochLinks linksAtBirth(int rank, List<Integer> fills) {
        return links(rank, fills, locations);
    }

    private EpochLinks links(int rank, List<Integer> fills, List<RankLocation> changed) {
        String link = links.of(ranks.node(rank).orElseThrow());
        return new EpochLinks(ranks.epoch(), changed, fills, link, ranks.revision());
    }
}
