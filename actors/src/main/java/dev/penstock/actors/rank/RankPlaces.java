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
public record RankPlaces(List<RankPlace> byRank) {
    /** What a rank knows before it is told anything. */
    public static final RankPlaces NONE = new RankPlaces(List.of());

    public RankPlaces {
        byRank = List.copyOf(byRank);
        for (int rank = 0; rank < byRank.size(); rank++) {
            if (byRank.get(rank).rank() != rank) {
                throw new IllegalArgumentException(
                        "expected the place of rank %d, got %s".formatted(rank, byRank.get(rank)));
            }
        }
    }

    /**
     * The same after these have changed.
     *
     * @param changes by rising rank
     * @throws IllegalArgumentException if some rank would have no place
     */
    public RankPlaces with(List<RankPlace> changes) {
        List<RankPlace> places = new ArrayList<>(byRank);
        for (RankPlace change : changes) {
            if (change.rank() < places.size()) {
                places.set(change.rank(), change);
            } else {
                places.add(change);
            }
        }
        return new RankPlaces(places);
    }

    /** For each rank, the lowest one that lives in the same process. */
    public List<Integer> homes() {
        return byRank.stream().map(RankPlace::home).toList();
    }

    /** By rank; empty if all use this process's media driver. */
    public Map<Integer, PeerAddress> addresses() {
        Map<Integer, PeerAddress> addresses = new HashMap<>();
        for (RankPlace place : byRank) {
            place.address().ifPresent(address -> addresses.put(place.rank(), address));
        }
        return addresses;
    }

    /** Who holds whose mirror, of which these are to be filled. */
    public MirrorLayout mirrors(List<Integer> fills) {
        return new MirrorLayout(byRank.stream().map(RankPlace::mirrorHolder).toList(), fills);
    }
}
