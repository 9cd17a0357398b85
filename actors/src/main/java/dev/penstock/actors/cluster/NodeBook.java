package dev.penstock.actors.cluster;

import akka.actor.typed.ActorRef;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;

/** Which nodes are there and what runs have taken of them. Its owner's thread only. */
final class NodeBook {
    /** A node that is there. */
    record Entry(NodeOffer offer, ActorRef<ClusterNode.Command> node) {}

    /**
     * What a run asks for.
     *
     * @param bytes of each rank
     * @param crossesHosts whether ranks may be on several hosts
     */
    record Wish(List<Long> bytes, Optional<Integer> ranksPerNode, boolean crossesHosts) {
        long total() {
            return bytes.stream().mapToLong(Long::longValue).sum();
        }
    }

    /** What a run gets. */
    sealed interface Answer {
        /** Entry r is for rank r. */
        record Granted(List<Entry> nodes) implements Answer {}

        /** Not yet; a line for people. */
        record Wanting(String line) implements Answer {}
    }

    private final Map<String, Entry> byAddress = new TreeMap<>();
    private final Map<String, Map<String, Long>> taken = new HashMap<>();

    void add(Entry entry) {
        byAddress.put(entry.offer().address(), entry);
    }

    Optional<Entry> remove(String address) {
        return Optional.ofNullable(byAddress.remove(address));
    }

    Optional<Entry> at(String address) {
        return Optional.ofNullable(byAddress.get(address));
    }

    Collection<Entry> all() {
        return List.copyOf(byAddress.values());
    }

    /** What a run had taken is free again. */
    void release(String run) {
        taken.remove(run);
    }

    /** Takes room for a run's ranks if there is enough. */
    Answer take(String run, Wish wish) {
        release(run);
        List<RankPlacement.Group> groups = new ArrayList<>();
        for (int rank = 0; rank < wish.bytes().size(); rank++) {
            groups.add(new RankPlacement.Group(List.of(rank), wish.bytes().get(rank)));
        }
        int most = wish.ranksPerNode().orElse(Integer.MAX_VALUE);
        List<RankPlacement.Room> rooms =
                byAddress.values().stream().map(entry -> room(entry.offer(), most)).toList();
        return switch (place(groups, rooms, wish)) {
            case RankPlacement.Answer.Placed(List<String> addresses) -> {
                List<Entry> nodes = addresses.stream().map(this::known).toList();
                Map<String, Long> bytes = new HashMap<>();
                for (int rank = 0; rank < nodes.size(); rank++) {
                    bytes.merge(addresses.get(rank), wish.bytes().get(rank), Long::sum);
                }
                taken.put(run, bytes);
                yield new Answer.Granted(nodes);
            }
            case RankPlacement.Answer.Missing missing ->
                    new Answer.Wanting(wanting(wish, missing, rooms));
        };
    }

    /** On all hosts, or on the one that spreads it best. */
    private static RankPlacement.Answer place(
            List<RankPlacement.Group> groups, List<RankPlacement.Room> rooms, Wish wish) {
        if (wish.crossesHosts()) {
            return RankPlacement.of(groups, rooms);
        }
        return Stream.concat(
                        rooms.stream()
                                .map(RankPlacement.Room::host)
                                .distinct()
                                .map(host -> rooms.stream().filter(r -> r.host().equals(host))),
                        Stream.of(Stream.<RankPlacement.Room>of()))
                .map(host -> RankPlacement.of(groups, host.toList()))
                .min(Comparator.comparingInt(NodeBook::rank))
                .orElseThrow();
    }

    /** Placed before missing; more nodes before fewer, less missing before more. */
    private static int rank(RankPlacement.Answer answer) {
        return switch (answer) {
            case RankPlacement.Answer.Placed(List<String> nodes) ->
                    -(int) nodes.stream().distinct().count();
            case RankPlacement.Answer.Missing missing -> missing.nodes();
        };
    }

    private Entry known(String address) {
        return at(address).orElseThrow();
    }

    private RankPlacement.Room room(NodeOffer offer, int mostRanks) {
        long used =
                taken.values().stream()
                        .mapToLong(run -> run.getOrDefault(offer.address(), 0L))
                        .sum();
        return new RankPlacement.Room(
                offer.address(), offer.host(), offer.memoryBytes() - used, mostRanks);
    }

    private static String wanting(
            Wish wish, RankPlacement.Answer.Missing missing, List<RankPlacement.Room> rooms) {
        long left = rooms.stream().mapToLong(room -> Math.max(0, room.bytes())).sum();
        String perNode =
                wish.ranksPerNode()
                        .map(most -> ", at most %d on a node".formatted(most))
                        .orElse("");
        long hosts = rooms.stream().map(RankPlacement.Room::host).distinct().count();
        return "waits for %d more %s with %s free%s: %d ranks hold %s%s; the %d %s here %s %s left"
                .formatted(
                        missing.nodes(),
                        missing.nodes() == 1 ? "node" : "nodes",
                        mebibytes(missing.bytes()),
                        hosts > 1 && !wish.crossesHosts() ? " on one host" : "",
                        wish.bytes().size(),
                        mebibytes(wish.total()),
                        perNode,
                        rooms.size(),
                        rooms.size() == 1 ? "node" : "nodes",
                        rooms.size() == 1 ? "has" : "have",
                        mebibytes(left));
    }

    /** Which ranks went where, and what they hold: a line per node. */
    static String placed(List<Entry> nodes, Wish wish) {
        Set<Entry> distinct = new LinkedHashSet<>(nodes);
        List<String> lines = new ArrayList<>();
        for (Entry entry : distinct) {
            List<Integer> ranks = new ArrayList<>();
            long bytes = 0;
            for (int rank = 0; rank < nodes.size(); rank++) {
                if (nodes.get(rank).equals(entry)) {
                    ranks.add(rank);
                    bytes += wish.bytes().get(rank);
                }
            }
            lines.add(
                    "%s %s on %s, %s"
                            .formatted(
                                    ranks.size() == 1 ? "rank" : "ranks",
                                    numbers(ranks),
                                    entry.offer().text(),
                                    mebibytes(bytes)));
        }
        return "placed: " + String.join("\n        ", lines);
    }

    /** How tensors travel between the hosts of these nodes; empty if there is one. */
    static Optional<String> betweenHosts(List<Entry> nodes, boolean sealed) {
        long hosts = nodes.stream().map(entry -> entry.offer().host()).distinct().count();
        return hosts < 2
                ? Optional.empty()
                : Optional.of(
                        "tensors between its %d hosts travel over UDP, %s"
                                .formatted(
                                        hosts,
                                        sealed
                                                ? "sealed with the run's key"
                                                : "checked but not sealed: there is no TLS to carry a key"));
    }

    private static String numbers(List<Integer> ranks) {
        List<Integer> sorted = ranks.stream().sorted(Comparator.naturalOrder()).toList();
        return sorted.size() > 1 && sorted.getLast() - sorted.getFirst() == sorted.size() - 1
                ? sorted.getFirst() + "-" + sorted.getLast()
                : String.join(", ", sorted.stream().map(String::valueOf).toList());
    }

    private static String mebibytes(long bytes) {
        double mebi = bytes / (double) (1L << 20);
        return mebi < 1024 ? "%.1f MiB".formatted(mebi) : "%.1f GiB".formatted(mebi / 1024);
    }
}
