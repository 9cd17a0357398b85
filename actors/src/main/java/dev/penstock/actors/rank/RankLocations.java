package dev.penstock.actors.rank;

import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.mirror.MirrorLayout;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Where all ranks of a run live in an epoch.
 *
 * @param byRank entry r is that of rank r
 */
public record RankLocations(List<RankLocation> byRank) {
    /** What a rank knows before it is told anything. */
    public static final RankLocations NONE = new RankLocations(List.of());

    public RankLocations {
        byRank = List.copyOf(byRank);
        for (int rank = 0; rank < byRank.size(); rank++) {
            if (byRank.get(rank).rank() != rank) {
                throw new IllegalArgumentException(
                        "expected the location of rank %d, got %s"
                                .formatted(rank, byRank.get(rank)));
            }
        }
    }

    /**
     * The same after these have changed.
     *
     * @param changes by rising rank
     * @throws IllegalArgumentException if some rank would have no location
     */
    public RankLocations with(List<RankLocation> changes) {
        List<RankLocation> locations = new ArrayList<>(byRank);
        for (RankLocation change : changes) {
            if (change.rank() < locations.size()) {
                locations.set(change.rank(), change);
            } else {
                locations.add(change);
            }
        }
        return new RankLocations(locations);
    }

    /** What a supervisor has to know of these to tell what has changed. */
    public LocationDigests digests() {
        return LocationDigests.of(byRank);
    }

    /** For each rank, the lowest one that lives in the same process. */
    public List<Integer> homes() {
        return byRank.stream().map(RankLocation::home).toList();
    }

    /** By rank; empty if all use this process's media driver. */
    public Map<Integer, PeerAddress> addresses() {
        Map<Integer, PeerAddress> addresses = new HashMap<>();
        for (RankLocation location : byRank) {
            location.address().ifPresent(address -> addresses.put(location.rank(), address));
        }
        return addresses;
    }

    /** Who holds whose mirror, of which these are to be filled. */
    public MirrorLayout mirrors(List<Integer> fills) {
        return new MirrorLayout(byRank.stream().map(RankLocation::mirrorHolder).toList(), fills);
    }
}
