package dev.penstock.actors.supervisor;

import dev.penstock.actors.node.NodeInfo;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Predicate;

/** The nodes that are there, and which of them a rank goes to. */
final class Placer {
    private final RankTable ranks;
    private final List<NodeInfo> nodes = new ArrayList<>();

    Placer(RankTable ranks) {
        this.ranks = ranks;
    }

    /** A node introduced itself, perhaps once more. */
    void add(NodeInfo node) {
        if (!nodes.contains(node)) {
            nodes.add(node);
        }
    }

    /** A node is gone, or cannot be relied on. */
    void remove(NodeInfo node) {
        nodes.remove(node);
    }

    /** The node of a process of this host. */
    Optional<NodeInfo> ofProcess(long pid) {
        return first(node -> node.pid() == pid);
    }

    /** All nodes of a process, of whatever host: each was started for another rank. */
    List<NodeInfo> of(String process) {
        return nodes.stream().filter(node -> node.process().equals(process)).toList();
    }

    /** The node that was started for this rank, or one that takes any. */
    Optional<NodeInfo> nodeFor(int rank) {
        return first(node -> node.rank().filter(own -> own == rank).isPresent())
                .or(() -> first(node -> node.rank().isEmpty() && !node.spare()));
    }

    /** Same as {@link #nodeFor}, or a spare one that is free. */
    Optional<NodeInfo> replacementFor(int rank) {
        return first(node -> node.rank().filter(own -> own == rank).isPresent())
                .or(() -> first(node -> node.spare() && ranks.on(node).isEmpty()))
                .or(() -> nodeFor(rank));
    }

    /** Processes that wait for a rank. */
    List<NodeInfo> spares() {
        return nodes.stream().filter(node -> node.spare() && ranks.on(node).isEmpty()).toList();
    }

    boolean isEmpty() {
        return nodes.isEmpty();
    }

    /**
     * Whether nodes say where their data planes are: then a rank opens its links only when all
     * ranks have a node.
     */
    boolean addressesMatter() {
        return first(node -> node.address().isPresent()).isPresent();
    }

    private Optional<NodeInfo> first(Predicate<NodeInfo> wanted) {
        return nodes.stream().filter(wanted).findFirst();
    }
}
