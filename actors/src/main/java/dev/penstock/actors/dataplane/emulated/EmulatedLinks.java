package dev.penstock.actors.dataplane.emulated;

import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The links between the ranks of a run.
 *
 * @param usual between ranks of which nothing else is said
 * @param sites ranks that are near each other: tensors between ranks of one list are not delayed. A
 *     rank in no list is alone at its site
 * @param others links of a direction of their own, also between ranks of one site
 * @param seed decides which frames are lost
 */
public record EmulatedLinks(
        EmulatedLink usual,
        List<List<Integer>> sites,
        Map<Direction, EmulatedLink> others,
        long seed) {
    /** All tensors arrive when they arrive. */
    public static final EmulatedLinks NONE = uniform(EmulatedLink.NONE, 0);

    /**
     * From one rank to another.
     *
     * @param from the sender's rank
     * @param to the receiver's rank
     */
    public record Direction(int from, int to) {}

    public EmulatedLinks {
        sites = sites.stream().map(List::copyOf).toList();
        others = Map.copyOf(others);
    }

    /** Returns links that are all the same. */
    public static EmulatedLinks uniform(EmulatedLink link, long seed) {
        return new EmulatedLinks(link, List.of(), Map.of(), seed);
    }

    /** Whether any link may be slower than the real one. */
    public boolean areEmulated() {
        return !usual.equals(EmulatedLink.NONE) || !others.isEmpty();
    }

    /** Returns the link from one rank to another; empty if tensors between them are not delayed. */
    public Optional<EmulatedLink> between(int from, int to) {
        EmulatedLink own = others.get(new Direction(from, to));
        if (own == null) {
            boolean near =
                    sites.stream().anyMatch(site -> site.contains(from) && site.contains(to));
            own = near ? EmulatedLink.NONE : usual;
        }
        return own.equals(EmulatedLink.NONE) ? Optional.empty() : Optional.of(own);
    }
}
