package dev.penstock.actors.supervisor;

import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.node.NodeInfo;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Where media drivers are now that were started again. Nodes said once which driver they use; they
 * go over to its successor when their ranks resume. Other hosts reach them on the same UDP port
 * only if the configuration names it.
 */
final class Links {
    private static final String ANY = "";

    /** By former directory; that of {@link #ANY} where all processes of a run use one driver. */
    private final Map<String, String> successors = new HashMap<>();

    private boolean down;

    /** A driver is gone; none took its place yet. */
    void died() {
        down = true;
    }

    boolean areDown() {
        return down;
    }

    /**
     * @param former directory of the driver before, or empty if the run has but one
     */
    void moved(String former, String directory) {
        successors.replaceAll((_, last) -> last.equals(former) ? directory : last);
        successors.put(former, directory);
        down = false;
    }

    /** The directory that a node is to go over to; empty if it is where it was. */
    String of(NodeInfo node) {
        String first = node.address().map(PeerAddress::driverDirectory).orElse(ANY);
        return successors.getOrDefault(first, "");
    }

    /** The addresses as they are when all have gone over. */
    List<PeerAddress> now(List<PeerAddress> said) {
        return said.stream().map(this::now).toList();
    }

    private PeerAddress now(PeerAddress said) {
        String directory = successors.getOrDefault(said.driverDirectory(), said.driverDirectory());
        return new PeerAddress(said.host(), directory, said.udpEndpoint());
    }
}
