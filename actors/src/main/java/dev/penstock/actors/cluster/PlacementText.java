package dev.penstock.actors.cluster;

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/** What people read of where ranks are, and of what there is too little. */
final class PlacementText {
    private PlacementText() {}

    /** Ranks go somewhere. */
    static String go(int ranks) {
        return ranks == 1 ? "1 rank goes" : "%d ranks go".formatted(ranks);
    }

    /**
     * What a wish waits for.
     *
     * @param bytes of each rank of the run
     */
    static String wanting(
            NodeInventory.Wish wish,
            List<Long> bytes,
            RankPlacement.Answer.Missing missing,
            List<RankPlacement.Room> rooms) {
        long left = rooms.stream().mapToLong(room -> Math.max(0, room.bytes())).sum();
        String perNode =
                wish.ranksPerNode()
                        .map(most -> ", at most %d on a node".formatted(most))
                        .orElse("");
        long hosts = rooms.stream().map(RankPlacement.Room::host).distinct().count();
        int ranks = wish.ranks().size();
        return "waits for %d more %s with %s free%s: %d %s %s%s; the %d %s here %s %s left"
                .formatted(
                        missing.nodes(),
                        missing.nodes() == 1 ? "node" : "nodes",
                        mebibytes(missing.bytes()),
                        hosts > 1 && !wish.crossesHosts() ? " on one host" : "",
                        ranks,
                        ranks == 1 ? "rank holds" : "ranks hold",
                        mebibytes(wish.ranks().stream().mapToLong(bytes::get).sum()),
                        perNode,
                        rooms.size(),
                        rooms.size() == 1 ? "node" : "nodes",
                        rooms.size() == 1 ? "has" : "have",
                        mebibytes(left));
    }

    /**
     * Which ranks are where, and what they hold: a line per node.
     *
     * @param bytes of each rank
     */
    static String placed(Map<Integer, NodeOffer> nodes, List<Long> bytes) {
        List<String> lines = new ArrayList<>();
        Map<NodeOffer, List<Integer>> byNode = new LinkedHashMap<>();
        new TreeMap<>(nodes)
                .forEach(
                        (rank, node) ->
                                byNode.computeIfAbsent(node, _ -> new ArrayList<>()).add(rank));
        byNode.forEach(
                (node, ranks) ->
                        lines.add(
                                "%s %s on %s, %s"
                                        .formatted(
                                                ranks.size() == 1 ? "rank" : "ranks",
                                                numbers(ranks),
                                                node.text(),
                                                mebibytes(
                                                        ranks.stream()
                                                                .mapToLong(bytes::get)
                                                                .sum()))));
        return "placed: " + String.join("\n        ", lines);
    }

    /** How tensors travel between the hosts of these nodes; empty if there is one. */
    static Optional<String> betweenHosts(Collection<NodeOffer> nodes, boolean sealed) {
        long hosts = nodes.stream().map(NodeOffer::host).distinct().count();
        return hosts < 2
                ? Optional.empty()
                : Optional.of(
                        "tensors between its %d hosts travel over UDP, %s"
                                .formatted(
                                        hosts,
                                        sealed
                                                ? "sealed with the run's key"
                                                : "checked but not sealed: there is no TLS to carry"
                                                        + " a key"));
    }

    private static String numbers(List<Integer> ranks) {
        return ranks.size() > 1 && ranks.getLast() - ranks.getFirst() == ranks.size() - 1
                ? ranks.getFirst() + "-" + ranks.getLast()
                : String.join(", ", ranks.stream().map(String::valueOf).toList());
    }

    private static String mebibytes(long bytes) {
        double mebi = bytes / (double) (1L << 20);
        return mebi < 1024 ? "%.1f MiB".formatted(mebi) : "%.1f GiB".formatted(mebi / 1024);
    }
}
