package dev.penstock.actors.cluster;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.IntPredicate;

/**
 * Decides which node takes which rank. Ranks that share a stage stay together on one node; each
 * node takes a contiguous part of the pipeline, so that most neighbours share a node:
 *
 * <pre>
 *   ranks   0 1 2 | 3 4 5 | 6 7
 *   nodes     a       b      c        a and b on one host: one change of hosts
 * </pre>
 *
 * First the longest part is made as short as the nodes allow, then hosts change as rarely as
 * possible. Up to {@value #EXACT} nodes the answer is the best one; beyond that, it is found by
 * taking the host, and on it the node, that reaches furthest, and where nodes are of many sizes a
 * run may be told to wait although a search of all orders would find places. A thousand nodes ask
 * as they come, so what counting alone refuses is not tried. Pure.
 */
public final class RankPlacement {
    /** Up to so many nodes, all orders of nodes are looked at. */
    static final int EXACT = 11;

    /** At most so many lengths of the longest part are tried before nodes are too few. */
    private static final int TRIES = 64;

    /**
     * Ranks that belong on one node.
     *
     * @param ranks ascending; groups follow each other as their ranks do in the pipeline
     * @param bytes device memory that they hold together
     */
    public record Group(List<Integer> ranks, long bytes) {
        public Group {
            ranks = List.copyOf(ranks);
        }
    }

    /**
     * What a node has left.
     *
     * @param host nodes of one host exchange tensors through its memory
     * @param ranks how many more it takes
     */
    public record Room(String node, String host, long bytes, int ranks) {}

    /** What came out. */
    public sealed interface Answer {
        /** Entry r is the node of rank r. */
        record Placed(List<String> nodes) implements Answer {
            public Placed {
                nodes = List.copyOf(nodes);
            }
        }

        /**
         * Too little room.
         *
         * @param nodes how many more nodes of that size would do, one group on each
         * @param bytes memory that each of them needs
         */
        record Missing(int nodes, long bytes) implements Answer {}
    }

    /** A node and the first group that it does not take any more. */
    private record Part(int room, int end) {}

    private record Size(long bytes, int ranks) {}

    private final List<Group> groups;
    private final List<Room> rooms;

    /** What came out, by the most ranks that a node was to take. */
    private final Map<Integer, Optional<List<Part>>> tried = new HashMap<>();

    private RankPlacement(List<Group> groups, List<Room> rooms) {
        this.groups = groups;
        this.rooms = rooms;
    }

    /**
     * Places groups.
     *
     * @param groups at least one, in pipeline order
     * @param rooms each node once; among equals the earlier ones are taken
     */
    public static Answer of(List<Group> groups, List<Room> rooms) {
        var placement = new RankPlacement(groups, rooms);
        Optional<List<Part>> parts = placement.byHalves().or(placement::oneByOne);
        if (parts.isPresent()) {
            return placed(groups, rooms, parts.get());
        }
        long bytes = groups.stream().mapToLong(Group::bytes).max().orElseThrow();
        int counted =
                least(
                        1,
                        groups.size(),
                        more -> with(groups, rooms, more, bytes).mayFit(Integer.MAX_VALUE));
        int missing =
                least(
                        counted,
                        groups.size(),
                        more -> with(groups, rooms, more, bytes).byHalves().isPresent());
        return new Answer.Missing(missing, bytes);
    }

    private static RankPlacement with(List<Group> groups, List<Room> rooms, int more, long bytes) {
        List<Room> all = new ArrayList<>(rooms);
        for (int i = 0; i < more; i++) {
            all.add(new Room("", "missing-" + i, bytes, Integer.MAX_VALUE));
        }
        return new RankPlacement(groups, all);
    }

    /**
     * The least number of which something is so that is so of all above it; {@code to} if that is
     * the only one, and one more if it is so of none. Few are tried.
     */
    private static int least(int from, int to, IntPredicate isSo) {
        int not = from - 1;
        int so = from;
        while (so <= to && !isSo.test(so)) {
            not = so;
            so = so == to ? to + 1 : Math.min(to, from + 2 * (so - from) + 1);
        }
        while (so <= to && so - not > 1) {
            int middle = (so + not) / 2;
            if (isSo.test(middle)) {
                so = middle;
            } else {
                not = middle;
            }
        }
        return so;
    }

    private static Answer placed(List<Group> groups, List<Room> rooms, List<Part> parts) {
        int ranks = groups.stream().mapToInt(group -> group.ranks().size()).sum();
        String[] nodes = new String[ranks];
        int next = 0;
        for (Part part : parts) {
            for (; next < part.end(); next++) {
                for (int rank : groups.get(next).ranks()) {
                    nodes[rank] = rooms.get(part.room()).node();
                }
            }
        }
        return new Answer.Placed(Arrays.asList(nodes));
    }

    private Optional<List<Part>> byHalves() {
        int most = least(counted(), ranks(), longest -> parts(longest).isPresent());
        return most > ranks() ? Optional.empty() : parts(most);
    }

    private int ranks() {
        return groups.stream().mapToInt(group -> group.ranks().size()).sum();
    }

    /** The shortest longest part that counting does not refuse. */
    private int counted() {
        return least(1, ranks(), this::mayFit);
    }

    /**
     * Reaching furthest may fail with longer parts where it does not with shorter ones, as a large
     * node takes small groups that smaller ones could have had:
     *
     * <pre>
     *   groups   2 2 2 2 2 2 12        longest 3:  a: 2 2 2   b: 2 2 2   c: 12
     *   nodes    a 6  b 6  c 12        longest 4:  c: 2 2 2 2   a: 2 2   nobody: 12
     * </pre>
     */
    private Optional<List<Part>> oneByOne() {
        if (rooms.size() <= EXACT) {
            return Optional.empty(); // there halves miss nothing
        }
        int from = counted();
        int to = ranks();
        int step = Math.max(1, Math.ceilDiv(to - from + 1, TRIES));
        for (int longest = from; longest <= to; longest += step) {
            if (parts(longest).isPresent()) {
                return parts(longest);
            }
        }
        return Optional.empty();
    }

    private Optional<List<Part>> parts(int most) {
        return tried.computeIfAbsent(
                most, _ -> rooms.size() <= EXACT ? best(most) : furthest(most));
    }

    /** Whether the nodes would take that many groups if all were as small as the smallest. */
    private boolean mayFit(int most) {
        long bytes = groups.stream().mapToLong(Group::bytes).min().orElseThrow();
        int ranks = groups.stream().mapToInt(group -> group.ranks().size()).min().orElseThrow();
        long taken = 0;
        for (Room room : rooms) {
            long fit = Math.min(most, room.ranks()) / ranks;
            taken += Math.max(0, bytes == 0 ? fit : Math.min(fit, room.bytes() / bytes));
        }
        return taken >= groups.size();
    }

    /** The first group from {@code begin} on that a node cannot take any more. */
    private int reach(int room, int begin, int most) {
        long bytes = rooms.get(room).bytes();
        int ranks = Math.min(most, rooms.get(room).ranks());
        int end = begin;
        while (end < groups.size()
                && groups.get(end).bytes() <= bytes
                && groups.get(end).ranks().size() <= ranks) {
            bytes -= groups.get(end).bytes();
            ranks -= groups.get(end).ranks().size();
            end++;
        }
        return end;
    }

    /**
     * Over sets of nodes, in rising number of changes of hosts: how far a set reaches that ends
     * with a certain node. Reaching further is never worse, since what is left is a suffix.
     */
    private Optional<List<Part>> best(int most) {
        int nodes = rooms.size();
        int[][][] reached = new int[nodes][1 << nodes][nodes];
        for (int[][] changes : reached) {
            for (int[] set : changes) {
                Arrays.fill(set, -1);
            }
        }
        for (int changes = 0; changes < nodes; changes++) {
            for (int set = 1; set < 1 << nodes; set++) {
                for (int last = nodes - 1; last >= 0; last--) {
                    if ((set & 1 << last) == 0) {
                        continue;
                    }
                    int begin = before(reached, changes, set, last);
                    int end = begin < 0 ? -1 : reach(last, begin, most);
                    reached[changes][set][last] = end > begin ? end : -1;
                    if (end == groups.size()) {
                        return Optional.of(path(reached, changes, set, last));
                    }
                }
            }
        }
        return Optional.empty();
    }

    /** How far the set without its last node reaches. */
    private int before(int[][][] reached, int changes, int set, int last) {
        int rest = set & ~(1 << last);
        if (rest == 0) {
            return changes == 0 ? 0 : -1;
        }
        int begin = -1;
        for (int other = 0; other < rooms.size(); other++) {
            int left = changes - change(other, last);
            if ((rest & 1 << other) != 0 && left >= 0) {
                begin = Math.max(begin, reached[left][rest][other]);
            }
        }
        return begin;
    }

    private int change(int from, int to) {
        return rooms.get(from).host().equals(rooms.get(to).host()) ? 0 : 1;
    }

    private List<Part> path(int[][][] reached, int changes, int set, int last) {
        List<Part> parts = new ArrayList<>();
        int end = groups.size();
        int room = last;
        int rest = set;
        int left = changes;
        while (true) {
            parts.addFirst(new Part(room, end));
            int begin = before(reached, left, rest, room);
            rest &= ~(1 << room);
            if (rest == 0) {
                return parts;
            }
            int previous = rooms.size() - 1;
            while ((rest & 1 << previous) == 0
                    || left < change(previous, room)
                    || reached[left - change(previous, room)][rest][previous] != begin) {
                previous--;
            }
            left -= change(previous, room);
            room = previous;
            end = begin;
        }
    }

    private Optional<List<Part>> furthest(int most) {
        List<Deque<List<Integer>>> kinds = hostsByKind();
        List<Part> parts = new ArrayList<>();
        int begin = 0;
        while (begin < groups.size()) {
            List<Part> next = List.of();
            int end = begin;
            Deque<List<Integer>> taken = kinds.getFirst();
            for (Deque<List<Integer>> kind : kinds) {
                List<Part> here = kind.isEmpty() ? next : alongHost(kind.element(), begin, most);
                if (!here.isEmpty() && here.getLast().end() > end) {
                    next = here;
                    end = here.getLast().end();
                    taken = kind;
                }
            }
            if (next.isEmpty()) {
                return Optional.empty();
            }
            parts.addAll(next);
            taken.remove();
            begin = end;
        }
        return Optional.of(parts);
    }

    /** The rooms of hosts; one host of those with the same room is as good as any other. */
    private List<Deque<List<Integer>>> hostsByKind() {
        Map<String, List<Integer>> byHost = new LinkedHashMap<>();
        for (int room = 0; room < rooms.size(); room++) {
            byHost.computeIfAbsent(rooms.get(room).host(), _ -> new ArrayList<>()).add(room);
        }
        Map<List<Size>, Deque<List<Integer>>> byKind = new LinkedHashMap<>();
        for (List<Integer> host : byHost.values()) {
            List<Size> sizes =
                    host.stream()
                            .map(rooms::get)
                            .map(room -> new Size(room.bytes(), room.ranks()))
                            .toList();
            byKind.computeIfAbsent(sizes, _ -> new ArrayDeque<>()).add(host);
        }
        return List.copyOf(byKind.values());
    }

    private List<Part> alongHost(List<Integer> host, int from, int most) {
        List<Integer> left = new ArrayList<>(host);
        List<Part> parts = new ArrayList<>();
        int begin = from;
        while (begin < groups.size() && !left.isEmpty()) {
            int end = begin;
            Integer best = left.getFirst();
            for (Integer room : left) {
                int reach = reach(room, begin, most);
                if (reach > end) {
                    end = reach;
                    best = room;
                }
            }
            if (end == begin) {
                break;
            }
            parts.add(new Part(best, end));
            left.remove(best);
            begin = end;
        }
        return parts;
    }
}
