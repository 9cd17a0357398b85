package dev.penstock.actors.supervisor;

import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.node.NodeInfo;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.IntStream;

/**
 * Where media drivers are now that were started again. Nodes said once which driver they use; they
 * go over to its successor when their ranks resume. Other hosts reach them on the same UDP port
 * only if the configuration names it.
 */
final class Links {
    private static final String ANY = "";

    /** By former directory; that of {@link #ANY} where all processes of a run use one driver. */
    private final Map<String, String> successors = new HashMap<>();

    /** Directories of drivers that are gone and have no successor; {@link #ANY} if not known. */
    private final Set<String> down = new HashSet<>();

    private final RankTable ranks;

    Links(RankTable ranks) {
        this.ranks = ranks;
    }

    /**
     * A driver is gone; none took its place yet.
     *
     * @param directory of that driver; empty if all processes use it, or if nobody knows
     */
    void died(String directory) {
        down.add(directory);
    }

    /** The driver that a node uses went with the node. */
    void diedWith(NodeInfo node) {
        died(current(node));
    }

    /** Whether a node says which of several drivers it uses. */
    static boolean names(NodeInfo node) {
        return node.address().isPresent();
    }

    /** Directories of drivers that are gone; {@link #ANY} if one is not known. */
    Set<String> down() {
        return Set.copyOf(down);
    }

    /** Whether a rank would find no driver. Nobody waits for one that no rank uses. */
    boolean areDown() {
        return !down.isEmpty()
                && (down.contains(ANY)
                        || IntStream.range(0, ranks.size())
                                .mapToObj(ranks::node)
                                .flatMap(Optional::stream)
                                .anyMatch(node -> down.contains(current(node))));
    }

    /**
     * @param former directory of the driver before, or empty if the run has but one
     */
    void moved(String former, String directory) {
        successors.replaceAll((_, last) -> last.equals(former) ? directory : last);
        successors.put(former, directory);
        if (former.equals(ANY)) {
            down.clear();
        } else {
            down.removeAll(Set.of(former, ANY));
        }
    }

    private String current(NodeInfo node) {
        String first = node.address().map(PeerAddress::driverDirectory).orElse(ANY);
        return successors.getOrDefault(first, first);
    }

    /** The directory that a node is to go over to; empty if it is where it was. */
    String of(NodeInfo node) {
        String first = node.address().map(PeerAddress::driverDirectory).orElse(ANY);
        return successors.getOrDefault(first, "");
    }

    /** The addresses as they are when all have gone over. */
    Map<Integer, PeerAddress> now(Map<Integer, PeerAddress> said) {
        Map<Integer, PeerAddress> now = new TreeMap<>(said);
        now.replaceAll((_, address) -> now(address));
        return now;
    }

    private PeerAddress now(PeerAddress said) {
        String directory = successors.getOrDefault(said.driverDirectory(), said.driverDirectory());
        return new PeerAddress(said.host(), directory, said.udpEndpoint());
    }
}
