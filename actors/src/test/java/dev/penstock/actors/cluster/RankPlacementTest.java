package dev.penstock.actors.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.cluster.RankPlacement.Answer;
import dev.penstock.actors.cluster.RankPlacement.Group;
import dev.penstock.actors.cluster.RankPlacement.Room;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class RankPlacementTest {
    @Test
    void neighboursShareAHost() {
        List<Room> rooms =
                List.of(room("a", "east", 10), room("b", "west", 10), room("c", "east", 10));

        assertThat(placed(equal(3, 1), rooms)).isEqualTo(List.of("b", "a", "c"));
    }

    @Test
    void aNodeTakesSeveralRanksWhenThereAreFewNodes() {
        List<Room> rooms = List.of(room("a", "east", 10), room("b", "east", 10));

        assertThat(placed(equal(4, 1), rooms)).isEqualTo(List.of("a", "a", "b", "b"));
    }

    @Test
    void memoryIsRespected() {
        List<Room> rooms = List.of(room("small", "east", 3), room("large", "east", 9));

        assertThat(placed(equal(4, 3), rooms))
                .isEqualTo(List.of("small", "large", "large", "large"));
    }

    @Test
    void ranksOfOneStageStayOnOneNode() {
        List<Group> groups = List.of(new Group(List.of(0, 1), 2), new Group(List.of(2, 3), 2));
        List<Room> rooms = List.of(room("a", "east", 3), room("b", "east", 3));

        assertThat(placed(groups, rooms)).isEqualTo(List.of("a", "a", "b", "b"));
    }

    @Test
    void whatIsMissingIsCounted() {
        List<Room> rooms = List.of(new Room("a", "east", 10, 1));

        assertThat(RankPlacement.of(equal(4, 3), rooms)).isEqualTo(new Answer.Missing(3, 3));
        assertThat(RankPlacement.of(equal(4, 3), List.of())).isEqualTo(new Answer.Missing(4, 3));
    }

    /** All assignments of few ranks to few nodes, tried one by one. */
    @Test
    void noContiguousAssignmentIsBetter() {
        Random random = new Random(5);
        int possible = 0;
        for (int trial = 0; trial < 3000; trial++) {
            List<Group> groups = new ArrayList<>();
            int ranks = 1 + random.nextInt(5);
            for (int rank = 0; rank < ranks; rank++) {
                groups.add(new Group(List.of(rank), 1 + random.nextInt(4)));
            }
            List<Room> rooms = new ArrayList<>();
            int nodes = 1 + random.nextInt(4);
            for (int node = 0; node < nodes; node++) {
                rooms.add(
                        new Room(
                                "n" + node,
                                "h" + random.nextInt(2),
                                random.nextInt(9),
                                1 + random.nextInt(4)));
            }
            int @Nullable [] best = best(groups, rooms);
            switch (RankPlacement.of(groups, rooms)) {
                case Answer.Missing _ -> assertThat(best).as("trial %d", trial).isNull();
                case Answer.Placed(List<String> names) -> {
                    possible++;
                    assertThat(score(indexes(names, rooms), groups, rooms))
                            .as("trial %d: %s in %s", trial, groups, rooms)
                            .isEqualTo(best);
                }
            }
        }
        assertThat(possible).isGreaterThan(1000);
    }

    /** Only parts of three groups leave the largest node to the largest group. */
    @Test
    void aLargeNodeIsKeptForALargeGroupAlsoAmongManyNodes() {
        List<Group> groups = new ArrayList<>();
        for (int rank = 0; rank < 6; rank++) {
            groups.add(new Group(List.of(rank), 2));
        }
        groups.add(new Group(List.of(6), 12));
        groups.add(new Group(List.of(7), 1));
        List<Room> rooms = new ArrayList<>();
        rooms.add(room("a", "east", 6));
        rooms.add(room("b", "west", 6));
        rooms.add(room("large", "north", 12));
        for (int node = 0; node < RankPlacement.EXACT; node++) {
            rooms.add(room("small" + node, "south" + node, 1));
        }

        assertThat(placed(groups, rooms))
                .isEqualTo(List.of("a", "a", "a", "b", "b", "b", "large", "small0"));
    }

    /** Beyond the exact search the answer must still be a sound one. */
    @Test
    void manyNodesAreFilledHostByHost() {
        List<Room> rooms = new ArrayList<>();
        for (int node = 0; node < 64; node++) {
            rooms.add(room("n" + node, "h" + node % 8, 10));
        }

        int[] nodes = indexes(placed(equal(64, 4), rooms), rooms);

        assertThat(score(nodes, equal(64, 4), rooms)).isEqualTo(new int[] {1, 7});
    }

    private static List<Group> equal(int ranks, long bytes) {
        return IntStream.range(0, ranks).mapToObj(rank -> new Group(List.of(rank), bytes)).toList();
    }

    private static Room room(String node, String host, long bytes) {
        return new Room(node, host, bytes, Integer.MAX_VALUE);
    }

    private static List<String> placed(List<Group> groups, List<Room> rooms) {
        return ((Answer.Placed) RankPlacement.of(groups, rooms)).nodes();
    }

    private static int[] indexes(List<String> names, List<Room> rooms) {
        List<String> known = rooms.stream().map(Room::node).toList();
        return names.stream().mapToInt(known::indexOf).toArray();
    }

    /** Longest part and changes of hosts of the best sound assignment; null if there is none. */
    private static int @Nullable [] best(List<Group> groups, List<Room> rooms) {
        int @Nullable [] best = null;
        int ranks = groups.size();
        for (int code = 0; code < Math.pow(rooms.size(), ranks); code++) {
            int[] nodes = new int[ranks];
            for (int rank = 0, rest = code; rank < ranks; rank++, rest /= rooms.size()) {
                nodes[rank] = rest % rooms.size();
            }
            int @Nullable [] score = score(nodes, groups, rooms);
            if (score != null && (best == null || Arrays.compare(score, best) < 0)) {
                best = score;
            }
        }
        return best;
    }

    /** Null for an assignment that does not fit or lets a node take two parts. */
    private static int @Nullable [] score(int[] nodes, List<Group> groups, List<Room> rooms) {
        Map<Integer, Long> bytes = new HashMap<>();
        Map<Integer, Integer> ranks = new HashMap<>();
        int changes = 0;
        for (int rank = 0; rank < nodes.length; rank++) {
            boolean begins = rank == 0 || nodes[rank] != nodes[rank - 1];
            if (begins && ranks.containsKey(nodes[rank])) {
                return null;
            }
            bytes.merge(nodes[rank], groups.get(rank).bytes(), Long::sum);
            ranks.merge(nodes[rank], 1, Integer::sum);
            if (rank > 0
                    && !rooms.get(nodes[rank]).host().equals(rooms.get(nodes[rank - 1]).host())) {
                changes++;
            }
        }
        for (int node : ranks.keySet()) {
            if (bytes.getOrDefault(node, 0L) > rooms.get(node).bytes()
                    || ranks.getOrDefault(node, 0) > rooms.get(node).ranks()) {
                return null;
            }
        }
        int most = ranks.values().stream().mapToInt(Integer::intValue).max().orElse(0);
        return new int[] {most, changes};
    }
}
