package dev.penstock.actors.supervisor;

import dev.penstock.actors.node.NodeInfo;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Predicate;

/** The nodes that are there, and which of them a rank goes to. */
final class Placer {
    private final RankTable ranks;
    private final Set<NodeInfo> nodes = new LinkedHashSet<>();

    /** Those that were started for a rank, by it, and those that take any but are no spares. */
    private final Map<Optional<Integer>, Set<NodeInfo>> takers = new HashMap<>();

    Placer(RankTable ranks) {
        this.ranks = ranks;
    }

    /** A node introduced itself, perhaps once more. */
    void add(NodeInfo node) {
        if (nodes.add(node) && !node.spare()) {
            takers.computeIfAbsent(node.rank(), _ -> new LinkedHashSet<>()).add(node);
        }
    }

    /** A node is gone, or cannot be relied on. */
    void remove(NodeInfo node) {
        nodes.remove(node);
        Set<NodeInfo> those = takers.get(node.rank());
        if (those != null) {
            those.remove(node);
        }
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
        return taker(Optional.of(rank)).or(() -> taker(Optional.empty()));
    }

    /** Same as {@link #nodeFor}, or a spare one that is free. */
    Optional<NodeInfo> replacementFor(int rank) {
        return taker(Optional.of(rank))
                .or(() -> first(node -> node.spare() && ranks.on(node).isEmpty()))
                .or(() -> nodeFor(rank));
    }

    /** Whether any rank lives in the process of this node. */
    boolean hasRanks(NodeInfo node) {
        return nodes.contains(node) && ranks.livesIn(node.process());
    }

    /**
     * The node of another rank that this one may live beside: of the processes with the fewest
     * ranks the one whose ranks are nearest in number, which exchange the most.
     *
     * @param refuges of other ranks, and processes that have no room
     */
    Optional<NodeInfo> nodeOfOthers(int rank, RecoveryPhase.Refuges refuges) {
        Map<String, Integer> loads = new HashMap<>();
        Map<Integer, NodeInfo> all = new TreeMap<>(refuges.found());
        for (RankTable.Row row : ranks.rows()) {
            ranks.node(row.rank()).ifPresent(node -> all.put(row.rank(), node));
        }
        all.values().forEach(node -> loads.merge(node.process(), 1, Integer::sum));
        return all.entrySet().stream()
                .filter(other -> !refuges.full().contains(other.getValue().process()))
                .min(
                        Comparator.comparing(
                                        (Map.Entry<Integer, NodeInfo> other) ->
                                                loads.getOrDefault(other.getValue().process(), 0))
                                .thenComparing(other -> Math.abs(other.getKey() - rank)))
                .map(Map.Entry::getValue);
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

    private Optional<NodeInfo> taker(Optional<Integer> rank) {
        return takers.getOrDefault(rank, Set.of()).stream().findFirst();
    }

    private Optional<NodeInfo> first(Predicate<NodeInfo> wanted) {
        return nodes.stream().filter(wanted).findFirst();
    }
}
