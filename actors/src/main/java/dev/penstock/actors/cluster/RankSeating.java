package dev.penstock.actors.cluster;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;

/**
 * Which ranks of a supervised run need a node, and how they get one:
 *
 * <pre>
 *   start --> homeless --room--> expected --the supervisor sees it there--> at home
 *                ^--its node is lost--|
 * </pre>
 */
final class RankSeating {
    private final RunShares shares;

    /** Ranks that the supervisor wants started and that have no node yet. */
    private final Set<Integer> homeless = new TreeSet<>();

    /** Ranks whose node was told, but not seen by the supervisor yet. */
    private final Set<Integer> expected = new TreeSet<>();

    /**
     * By address of a node that may have ranks again, how many were told to leave it. Which do is
     * for the supervisor to say.
     */
    private final Map<String, Integer> leaving = new HashMap<>();

    /** Addresses of nodes that live, but where a rank of this run fell silent or cannot start. */
    private final Set<String> avoided = new HashSet<>();

    private boolean moved;

    RankSeating(RunShares shares) {
        this.shares = shares;
    }

    boolean needsRoom() {
        return !homeless.isEmpty();
    }

    /** The same, away from nodes that are to be avoided. */
    NodeInventory.Wish careful(NodeInventory.Wish wish) {
        return wish.avoiding(avoided);
    }

    /** For all that need room. */
    NodeInventory.Wish narrow(NodeInventory.Wish wish) {
        return wish.of(homeless, avoided);
    }

    /**
     * A rank is to be started.
     *
     * @return whether that is news
     */
    boolean start(int rank) {
        if (expected.contains(rank)) {
            return false; // asked for in an earlier epoch, and on its way
        }
        NodeOffer home = shares.homes().get(rank);
        if (home != null && !leaves(home.address())) {
            avoid(home.address()); // it lives, and yet the rank there is no more
        }
        homeless.add(rank);
        return true;
    }

    private boolean leaves(String address) {
        Integer others = leaving.computeIfPresent(address, (_, ranks) -> ranks - 1);
        return others != null && others >= 0;
    }

    void avoid(String address) {
        avoided.add(address);
    }

    /** What comes back at this address is another node. */
    void avoidNoMore(String address) {
        avoided.remove(address);
    }

    /** Nothing of the run is at this node any more, and what was to come there needs room again. */
    void forget(String address) {
        Set<Integer> lost = shares.ranksAt(address);
        lost.retainAll(expected);
        shares.lost(address);
        expected.removeAll(lost);
        homeless.addAll(lost);
    }

    /** Ranks leave their nodes for emptier ones. */
    void move(Set<Integer> ranks) {
        leaving.clear();
        Map<Integer, NodeOffer> homes = shares.homes();
        ranks.stream()
                .map(homes::get)
                .filter(Objects::nonNull)
                .forEach(home -> leaving.merge(home.address(), 1, Integer::sum));
    }

    /** Ranks go to these nodes. */
    void place(Map<Integer, NodeOffer> nodes) {
        homeless.removeAll(nodes.keySet());
        expected.addAll(nodes.keySet());
        shares.place(nodes);
        moved = true;
    }

    /** Ranks are in a share that was kept for the run. */
    void adopted(Set<Integer> ranks) {
        homeless.removeAll(ranks);
    }

    /**
     * The supervisor sees a rank in a process, where it may have gone by itself.
     *
     * @return its node, if that is another than before
     */
    Optional<NodeOffer> placed(int rank, String process) {
        expected.remove(rank);
        homeless.remove(rank);
        NodeOffer home = shares.homes().get(rank);
        if (home != null && home.process().equals(process)) {
            return Optional.empty();
        }
        Optional<NodeOffer> other = shares.node(process);
        other.ifPresent(
                node -> {
                    moved = true;
                    shares.moved(rank, node);
                });
        return other;
    }

    /** All ranks are back; whether some are elsewhere than people were told. */
    boolean settled() {
        boolean some = moved;
        moved = false;
        return some;
    }
}
