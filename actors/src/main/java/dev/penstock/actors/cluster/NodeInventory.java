package dev.penstock.actors.cluster;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Which nodes are there and what runs have taken of them. Its owner's thread only. */
final class NodeInventory {
    /** What a run's ranks hold, which depends on who lives beside whom. */
    @FunctionalInterface
    interface Needs {
        /**
         * Bytes of each rank.
         *
         * @param homes by rank, the lowest rank that lives on the same node
         */
        List<Long> at(List<Integer> homes);
    }

    /**
     * What a run asks for.
     *
     * @param together bytes of each rank of the run if all live on one node
     * @param needs the same of ranks that live elsewhere
     * @param ranks that need room; the others stay where they are
     * @param crossesHosts whether ranks may be on several hosts
     * @param avoids addresses of nodes that these ranks do not go to
     */
    record Wish(
            List<Long> together,
            Needs needs,
            Set<Integer> ranks,
            Optional<Integer> ranksPerNode,
            boolean crossesHosts,
            Set<String> avoids) {
        /** For all ranks of a run, anywhere. */
        Wish(
                List<Long> together,
                Needs needs,
                Optional<Integer> ranksPerNode,
                boolean crossesHosts) {
            this(
                    together,
                    needs,
                    IntStream.range(0, together.size()).boxed().collect(Collectors.toSet()),
                    ranksPerNode,
                    crossesHosts,
                    Set.of());
        }

        /** For some ranks. */
        Wish of(Set<Integer> some, Set<String> avoided) {
            return new Wish(
                    together,
                    needs,
                    Set.copyOf(some),
                    ranksPerNode,
                    crossesHosts,
                    Set.copyOf(avoided));
        }

        /** The same, and these ranks go to none of these nodes either. */
        Wish avoiding(Set<String> addresses) {
            Set<String> all = new HashSet<>(avoids);
            all.addAll(addresses);
            return of(ranks, all);
        }

        /** Bytes of each rank with ranks at these addresses; others live by themselves. */
        List<Long> bytesAt(Map<Integer, String> addresses) {
            Map<String, Integer> lowest = new HashMap<>();
            new TreeMap<>(addresses).forEach((rank, address) -> lowest.putIfAbsent(address, rank));
            List<Integer> homes = new ArrayList<>();
            for (int rank = 0; rank < together.size(); rank++) {
                String address = addresses.get(rank);
                homes.add(address == null ? rank : lowest.getOrDefault(address, rank));
            }
            return needs.at(homes);
        }
    }

    /** What a run gets. */
    sealed interface Answer {
        /** The node of each rank that was asked for. */
        record Granted(Map<Integer, NodeOffer> nodes) implements Answer {}

        /** Not yet; a line for people. */
        record Wanting(String line) implements Answer {}
    }

    /** Where a rank is and what it holds there. */
    private record Seat(String address, long bytes) {}

    private final Map<String, NodeOffer> byAddress = new TreeMap<>();
    private final Map<String, Map<Integer, Seat>> seats = new HashMap<>();

    /** By run, where ranks go that were told to leave their nodes and have not left yet. */
    private final Map<String, Map<Integer, Seat>> keptFree = new HashMap<>();

    /**
     * Runs whose ranks moved by themselves, and what they asked for. What they hold now is asked
     * when it matters: a thousand ranks may move one by one, and the answer is about all of them.
     */
    private final Map<String, Wish> unweighed = new HashMap<>();

    void add(NodeOffer node) {
        byAddress.put(node.address(), node);
    }

    /** The node is gone, and with it all that runs had taken of it. */
    Optional<NodeOffer> remove(String address) {
        seats.keySet().forEach(run -> leave(run, address));
        keptFree.values().forEach(kept -> kept.values().removeIf(isAt(address)));
        return Optional.ofNullable(byAddress.remove(address));
    }

    Optional<NodeOffer> at(String address) {
        return Optional.ofNullable(byAddress.get(address));
    }

    Collection<NodeOffer> all() {
        return List.copyOf(byAddress.values());
    }

    /** Frees what a run had taken of this node. */
    void leave(String run, String address) {
        Map<Integer, Seat> mine = seats.computeIfAbsent(run, _ -> new TreeMap<>());
        mine.values().removeIf(isAt(address));
    }

    private static Predicate<Seat> isAt(String address) {
        return seat -> seat.address().equals(address);
    }

    /** What a run had taken is free again. */
    void release(String run) {
        seats.remove(run);
        unweighed.remove(run);
        forgo(run);
    }

    /**
     * A rank went somewhere by itself: to the holder of its mirror. Ignored if that node is gone by
     * now, which whoever says so does not know yet.
     */
    void seat(String run, Wish wish, int rank, String address) {
        if (at(address).isEmpty()) {
            return;
        }
        seats.computeIfAbsent(run, _ -> new TreeMap<>()).put(rank, new Seat(address, 0));
        unweighed.put(run, wish);
    }

    private Map<Integer, String> addresses(String run) {
        Map<Integer, String> addresses = new TreeMap<>();
        seats.getOrDefault(run, Map.of())
                .forEach((rank, seat) -> addresses.put(rank, seat.address()));
        return addresses;
    }

    private static Map<Integer, Seat> seated(Map<Integer, String> addresses, List<Long> bytes) {
        Map<Integer, Seat> seats = new TreeMap<>();
        addresses.forEach((rank, at) -> seats.put(rank, new Seat(at, bytes.get(rank))));
        return seats;
    }

    private Map<Integer, Seat> seatsOf(String run) {
        Wish wish = unweighed.remove(run);
        if (wish != null) {
            Map<Integer, String> all = addresses(run);
            seats.put(run, seated(all, wish.bytesAt(all)));
        }
        return seats.getOrDefault(run, Map.of());
    }

    /**
     * Takes room on certain nodes if there is enough; a run's wish for few ranks on a node counts
     * less than what its mirrors save.
     */
    boolean takeAt(String run, Wish wish, Map<Integer, String> wanted) {
        Map<Integer, String> all = addresses(run);
        all.putAll(wanted);
        Map<Integer, Seat> mine = seated(all, wish.bytesAt(all));
        boolean fits = hold(run, mine, wanted.values());
        if (fits) {
            seats.put(run, mine);
        }
        return fits;
    }

    /** Whether these nodes are there, with room for a run with these seats. */
    private boolean hold(String run, Map<Integer, Seat> mine, Collection<String> addresses) {
        Map<String, Long> taken = taken(run, mine);
        return addresses.stream()
                .allMatch(
                        address -> at(address).filter(node -> left(node, taken) >= 0).isPresent());
    }

    /**
     * Takes room for a run's ranks if there is enough for all of them. What they hold follows from
     * where they live, and that from what they hold: they are placed as if all lived together, and
     * again with more where that was too little.
     */
    Answer take(String run, Wish wish) {
        forgo(run);
        Map<Integer, String> others = addresses(run);
        others.keySet().removeAll(wish.ranks());
        List<Long> bytes = wish.together();
        while (true) {
            Map<Integer, Seat> mine = seated(others, bytes);
            List<RankPlacement.Room> rooms = rooms(run, mine, wish);
            Map<Integer, String> found = mine.isEmpty() ? Map.of() : near(run, mine, wish, bytes);
            if (found.isEmpty()) {
                switch (place(wish, bytes, rooms)) {
                    case RankPlacement.Answer.Placed(List<String> nodes) ->
                            found = byRank(wish, nodes);
                    case RankPlacement.Answer.Missing missing -> {
                        return onOneNode(run, wish, others)
                                .orElseGet(() -> wanting(run, wish, others, missing));
                    }
                }
            }
            Optional<Answer> granted = grant(run, wish, others, found);
            if (granted.isPresent()) {
                return granted.get();
            }
            bytes = larger(bytes, wish.bytesAt(together(others, found)));
        }
    }

    private static Map<Integer, String> byRank(Wish wish, List<String> nodes) {
        List<Integer> ranks = wish.ranks().stream().sorted().toList();
        Map<Integer, String> found = new TreeMap<>();
        for (int i = 0; i < ranks.size(); i++) {
            found.put(ranks.get(i), nodes.get(i));
        }
        return found;
    }

    private static Map<Integer, String> together(
            Map<Integer, String> others, Map<Integer, String> found) {
        Map<Integer, String> all = new TreeMap<>(others);
        all.putAll(found);
        return all;
    }

    /** The room, if what the ranks hold at these nodes is there. */
    private Optional<Answer> grant(
            String run, Wish wish, Map<Integer, String> others, Map<Integer, String> found) {
        Map<Integer, String> all = together(others, found);
        Map<Integer, Seat> mine = seated(all, wish.bytesAt(all));
        if (!hold(run, mine, found.values())) {
            return Optional.empty();
        }
        seats.put(run, mine);
        Map<Integer, NodeOffer> granted = new TreeMap<>();
        found.forEach((rank, address) -> granted.put(rank, known(address)));
        return Optional.of(new Answer.Granted(granted));
    }

    /** Where ranks that live apart hold more than there is, all may fit together. */
    private Optional<Answer> onOneNode(String run, Wish wish, Map<Integer, String> others) {
        long bytes = wish.ranks().stream().mapToLong(wish.together()::get).sum();
        return rooms(run, seated(others, wish.together()), wish).stream()
                .filter(room -> room.ranks() >= wish.ranks().size() && room.bytes() >= bytes)
                .map(RankPlacement.Room::node)
                .filter(node -> others.values().stream().allMatch(node::equals))
                .flatMap(
                        node ->
                                grant(
                                        run,
                                        wish,
                                        others,
                                        byRank(
                                                wish,
                                                Collections.nCopies(wish.ranks().size(), node)))
                                        .stream())
                .findFirst();
    }

    /**
     * Nodes that would do wherever the ranks went. They keep what they have: where a rank is silent
     * it may speak again.
     */
    private Answer wanting(
            String run,
            Wish wish,
            Map<Integer, String> others,
            RankPlacement.Answer.Missing least) {
        List<RankPlacement.Room> rooms = rooms(run, seated(others, wish.bytesAt(others)), wish);
        List<Long> apart = wish.bytesAt(Map.of());
        var missing =
                place(wish, apart, rooms) instanceof RankPlacement.Answer.Missing more
                        ? more
                        : least;
        return new Answer.Wanting(PlacementText.wanting(wish, apart, missing, rooms));
    }

    /** Of each rank; more than before of one at least, or the ranks would have had room. */
    private static List<Long> larger(List<Long> bytes, List<Long> held) {
        return IntStream.range(0, bytes.size())
                .mapToObj(rank -> Math.max(bytes.get(rank), held.get(rank)))
                .toList();
    }

    /**
     * The ranks that have to leave crowded nodes for a run to be spread over all that have room, as
     * evenly as they let it; empty if it is. No other run gets that room until these ranks {@link
     * #take} some or {@link #forgo} it.
     *
     * @param wish of all its ranks
     * @param most ranks on a node that is not crowded
     */
    Set<Integer> crowded(String run, Wish wish, int most) {
        Map<Integer, Seat> all = new TreeMap<>(seatsOf(run));
        Map<Integer, Seat> moving = new TreeMap<>();
        Optional<Map.Entry<Integer, Seat>> next;
        do {
            next = mover(run, all, moving.keySet(), wish, most);
            next.ifPresent(
                    rank -> {
                        all.put(rank.getKey(), rank.getValue());
                        moving.put(rank.getKey(), rank.getValue());
                    });
        } while (next.isPresent());
        keptFree.put(run, moving);
        return Set.copyOf(moving.keySet());
    }

    /** Ranks that were told to leave their nodes stay, or have left. */
    void forgo(String run) {
        keptFree.remove(run);
    }

    /** A rank from where most are, and its seat on a node with at least two fewer. */
    private Optional<Map.Entry<Integer, Seat>> mover(
            String run, Map<Integer, Seat> all, Set<Integer> moved, Wish wish, int most) {
        Map<String, Integer> loads = loads(all);
        List<RankPlacement.Room> rooms = rooms(run, all, wish);
        return all.entrySet().stream()
                .filter(rank -> !moved.contains(rank.getKey()))
                .filter(rank -> loads.getOrDefault(rank.getValue().address(), 0) > most)
                .sorted(
                        Comparator.comparing(
                                        (Map.Entry<Integer, Seat> rank) ->
                                                -loads.getOrDefault(rank.getValue().address(), 0))
                                .thenComparing(rank -> -rank.getKey()))
                .flatMap(rank -> emptier(rooms, loads, rank).stream())
                .findFirst();
    }

    /** What the rank frees on its own node does not matter: it goes to another. */
    private static Optional<Map.Entry<Integer, Seat>> emptier(
            List<RankPlacement.Room> rooms,
            Map<String, Integer> loads,
            Map.Entry<Integer, Seat> rank) {
        Seat seat = rank.getValue();
        int load = loads.getOrDefault(seat.address(), 0);
        return rooms.stream()
                .filter(room -> room.bytes() >= seat.bytes() && room.ranks() > 0)
                .map(RankPlacement.Room::node)
                .filter(at -> loads.getOrDefault(at, 0) + 1 < load)
                .min(Comparator.comparing((String at) -> loads.getOrDefault(at, 0)))
                .map(at -> Map.entry(rank.getKey(), new Seat(at, seat.bytes())));
    }

    /**
     * A seat for each rank beside those that are taken: on the node with fewest ranks of the run,
     * near its neighbours; the largest rank chooses first. Empty if one finds none: others may fit.
     */
    private Map<Integer, String> near(
            String run, Map<Integer, Seat> others, Wish wish, List<Long> needed) {
        Map<Integer, Seat> all = new TreeMap<>(others);
        Map<Integer, String> found = new TreeMap<>();
        List<Integer> largestFirst =
                wish.ranks().stream()
                        .sorted(
                                Comparator.comparing((Integer rank) -> -needed.get(rank))
                                        .thenComparing(rank -> rank))
                        .toList();
        for (int rank : largestFirst) {
            long bytes = needed.get(rank);
            Map<String, Integer> loads = loads(all);
            Optional<String> node =
                    rooms(run, all, wish).stream()
                            .filter(room -> room.bytes() >= bytes && room.ranks() > 0)
                            .map(RankPlacement.Room::node)
                            .min(
                                    Comparator.comparing((String at) -> loads.getOrDefault(at, 0))
                                            .thenComparing(at -> -neighbours(all, rank, at)));
            if (node.isEmpty()) {
                return Map.of();
            }
            all.put(rank, new Seat(node.get(), bytes));
            found.put(rank, node.get());
        }
        return found;
    }

    /** How many ranks each address has. */
    private static Map<String, Integer> loads(Map<Integer, Seat> seats) {
        Map<String, Integer> loads = new HashMap<>();
        seats.values().forEach(seat -> loads.merge(seat.address(), 1, Integer::sum));
        return loads;
    }

    /** Neighbours in the pipeline on this node count more than those on its host only. */
    private int neighbours(Map<Integer, Seat> seats, int rank, String address) {
        int sum = 0;
        for (int other : new int[] {rank - 1, rank + 1}) {
            Seat seat = seats.get(other);
            if (seat != null && host(seat.address()).equals(host(address))) {
                sum += seat.address().equals(address) ? 1 + 2 : 2;
            }
        }
        return sum;
    }

    private String host(String address) {
        return known(address).host();
    }

    /** What nodes have left for a run with these seats; only on its host, if it has one. */
    private List<RankPlacement.Room> rooms(String run, Map<Integer, Seat> mine, Wish wish) {
        Optional<String> host =
                wish.crossesHosts()
                        ? Optional.empty()
                        : mine.values().stream().findFirst().map(seat -> host(seat.address()));
        Map<String, Long> taken = taken(run, mine);
        Map<String, Integer> loads = loads(mine);
        int most = wish.ranksPerNode().orElse(Integer.MAX_VALUE);
        return byAddress.values().stream()
                .filter(offer -> !wish.avoids().contains(offer.address()))
                .filter(offer -> host.isEmpty() || host.get().equals(offer.host()))
                .map(
                        offer ->
                                new RankPlacement.Room(
                                        offer.address(),
                                        offer.host(),
                                        left(offer, taken),
                                        most - loads.getOrDefault(offer.address(), 0)))
                .toList();
    }

    /** Bytes by address that other runs have, and that a run with these seats would. */
    private Map<String, Long> taken(String run, Map<Integer, Seat> mine) {
        Map<String, Long> taken = new HashMap<>();
        Stream.concat(
                        Stream.concat(seats.keySet().stream(), keptFree.keySet().stream())
                                .distinct()
                                .filter(other -> !other.equals(run))
                                .flatMap(this::heldBy),
                        Stream.of(mine))
                .flatMap(some -> some.values().stream())
                .forEach(seat -> taken.merge(seat.address(), seat.bytes(), Long::sum));
        return taken;
    }

    private Stream<Map<Integer, Seat>> heldBy(String run) {
        return Stream.of(seatsOf(run), keptFree.getOrDefault(run, Map.of()));
    }

    private static long left(NodeOffer offer, Map<String, Long> takenAt) {
        long taken = takenAt.getOrDefault(offer.address(), 0L);
        return offer.memoryBytes() - taken;
    }

    /** On all hosts, or on the one that spreads it best. */
    private static RankPlacement.Answer place(
            Wish wish, List<Long> needed, List<RankPlacement.Room> rooms) {
        List<Long> bytes = wish.ranks().stream().sorted().map(needed::get).toList();
        List<RankPlacement.Group> groups =
                IntStream.range(0, bytes.size())
                        .mapToObj(i -> new RankPlacement.Group(List.of(i), bytes.get(i)))
                        .toList();
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
                .min(Comparator.comparingInt(NodeInventory::rank))
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

    private NodeOffer known(String address) {
        return at(address).orElseThrow();
    }
}
