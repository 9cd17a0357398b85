package dev.penstock.actors.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class NodeInventoryTest {
    private static final long MIB = 1 << 20;

    private final NodeInventory book = new NodeInventory();

    @Test
    void whatOneRunTookAnotherWaitsFor() {
        add("a", 10);
        NodeInventory.Wish wish = wish(true, Optional.empty(), List.of(4 * MIB, 4 * MIB));

        assertThat(book.take("first", wish)).isInstanceOf(NodeInventory.Answer.Granted.class);
        assertThat(book.take("second", wish))
                .isEqualTo(
                        new NodeInventory.Answer.Wanting(
                                "waits for 2 more nodes with 4.0 MiB free: 2 ranks hold 8.0 MiB;"
                                        + " the 1 node here has 2.0 MiB left"));
        book.release("first");
        assertThat(book.take("second", wish)).isInstanceOf(NodeInventory.Answer.Granted.class);
    }

    @Test
    void aLimitOfRanksPerNodeIsSaid() {
        add("a", 100);
        NodeInventory.Wish wish = wish(true, Optional.of(1), List.of(MIB, MIB));

        assertThat(book.take("run", wish))
                .isEqualTo(
                        new NodeInventory.Answer.Wanting(
                                "waits for 1 more node with 1.0 MiB free: 2 ranks hold 2.0 MiB, at"
                                        + " most 1 on a node; the 1 node here has 100.0 MiB left"));
    }

    @Test
    void aRunIsCrowdedWhileANodeHasTwoMoreRanksThanOneWithRoom() {
        add("a", 100);
        NodeInventory.Wish wish = wishFor(5, Optional.empty());
        book.take("run", wish);

        assertThat(book.crowded("run", wish, 0)).as("nowhere else to go").isEmpty();
        add("b", 100);
        assertThat(book.crowded("run", wish, 0)).containsExactlyInAnyOrder(3, 4);
        assertThat(book.crowded("run", wish, 4)).containsExactly(4);
        assertThat(book.crowded("run", wish, 5)).isEmpty();
        add("c", 100);
        assertThat(book.crowded("run", wish, 0)).containsExactlyInAnyOrder(2, 3, 4);
        assertThat(book.crowded("run", wishFor(5, Optional.of(1)), 0))
                .as("no other node takes a second rank")
                .containsExactlyInAnyOrder(3, 4);
    }

    @Test
    void aNodeWithoutMemoryForARankMakesNoRunCrowded() {
        add("a", 100);
        NodeInventory.Wish wish = wishFor(3, Optional.empty());
        book.take("run", wish);
        add("b", 0);

        assertThat(book.crowded("run", wish, 0)).isEmpty();
    }

    /** Who places ranks hears of a node's end after the inventory does. */
    @Test
    void aSeatAtANodeThatIsGoneIsNone() {
        add("a", 10);
        NodeInventory.Wish wish = wishFor(2, Optional.empty());
        book.seat("run", wish, 0, address("gone"));

        assertThat(book.take("run", wish.of(Set.of(1), Set.of())))
                .isInstanceOf(NodeInventory.Answer.Granted.class);
        assertThat(book.crowded("run", wish, 0)).isEmpty();
    }

    /** Each node that comes is a question for a run that waits. */
    @Test
    void aThousandRanksWaitForAThousandNodes() {
        NodeInventory.Wish wish = wishFor(1000, Optional.empty());
        for (int node = 0; node < 999; node++) {
            add("n" + node, 1);
        }

        assertThat(book.take("run", wish))
                .isEqualTo(
                        new NodeInventory.Answer.Wanting(
                                "waits for 1 more node with 1.0 MiB free: 1000 ranks hold 1000.0"
                                        + " MiB; the 999 nodes here have 999.0 MiB left"));
        add("last", 1);
        assertThat(book.take("run", wish)).isInstanceOf(NodeInventory.Answer.Granted.class);
    }

    @Test
    void whatRanksHoldThatMoveOneByOneIsAskedOnce() {
        add("a", 100);
        var asked = new AtomicInteger();
        var wish =
                new NodeInventory.Wish(
                        Collections.nCopies(50, MIB),
                        homes -> {
                            asked.incrementAndGet();
                            return Collections.nCopies(50, MIB);
                        },
                        Optional.empty(),
                        true);
        for (int rank = 0; rank < 50; rank++) {
            book.seat("run", wish, rank, address("a"));
        }

        assertThat(book.take("other", wishFor(51, Optional.empty())))
                .isInstanceOf(NodeInventory.Answer.Wanting.class);
        assertThat(book.take("third", wishFor(50, Optional.empty())))
                .isInstanceOf(NodeInventory.Answer.Granted.class);
        assertThat(asked).hasValue(1);
    }

    @Test
    void aRankGoesToItsMirrorIfItsMemoryFitsWhateverTheLimitOfRanks() {
        add("a", 3);
        add("b", 1);
        NodeInventory.Wish wish = wishFor(2, Optional.of(1));
        book.take("run", wish);
        book.remove(address("b"));

        assertThat(book.takeAt("run", wish, Map.of(1, address("b")))).as("gone").isFalse();
        assertThat(book.takeAt("run", wish, Map.of(1, address("a")))).isTrue();
        assertThat(book.take("other", wishFor(1, Optional.empty())))
                .isInstanceOf(NodeInventory.Answer.Granted.class);
        assertThat(book.takeAt("run", wish, Map.of(1, address("a")))).as("its own").isTrue();
        assertThat(book.takeAt("third", wish, Map.of(1, address("a")))).as("full").isFalse();
    }

    /** As groups do: their blocks are for members in other processes. */
    private static NodeInventory.Wish needingMoreApart(int ranks, long together, long apart) {
        return new NodeInventory.Wish(
                Collections.nCopies(ranks, together * MIB),
                homes ->
                        Collections.nCopies(
                                ranks,
                                (homes.stream().distinct().count() == 1 ? together : apart) * MIB),
                Optional.empty(),
                true);
    }

    @Test
    void ranksOnOneNodeTakeWhatTheyHoldThereAndNotMore() {
        add("a", 10);

        assertThat(book.take("run", needingMoreApart(2, 4, 6)))
                .isInstanceOf(NodeInventory.Answer.Granted.class);
        assertThat(book.take("rest", wishFor(2, Optional.empty())))
                .isInstanceOf(NodeInventory.Answer.Granted.class);
    }

    @Test
    void ranksOnTwoNodesTakeWhatTheyHoldApart() {
        add("a", 10);
        add("b", 6);

        assertThat(names(book.take("run", needingMoreApart(2, 4, 6))))
                .isEqualTo(Map.of(0, "a", 1, "b"));
        assertThat(book.take("rest", wishFor(5, Optional.empty())))
                .as("a has 4 left, b none")
                .isInstanceOf(NodeInventory.Answer.Wanting.class);
    }

    @Test
    void whereThereIsTooLittleApartAllGoToOneNode() {
        add("a", 10);
        add("b", 5);

        assertThat(names(book.take("run", needingMoreApart(2, 4, 6))))
                .isEqualTo(Map.of(0, "a", 1, "a"));
        assertThat(book.take("large", needingMoreApart(2, 5, 6)))
                .isEqualTo(
                        new NodeInventory.Answer.Wanting(
                                "waits for 2 more nodes with 6.0 MiB free: 2 ranks hold 12.0 MiB;"
                                        + " the 2 nodes here have 7.0 MiB left"));
    }

    @Test
    void whoLosesANeighbourHoldsMore() {
        add("a", 8);
        NodeInventory.Wish wish = needingMoreApart(2, 4, 6);
        book.take("run", wish);
        add("b", 6);

        assertThat(book.takeAt("run", wish, Map.of(1, address("b")))).isTrue();
        assertThat(book.take("rest", wishFor(3, Optional.empty())))
                .as("a has 2 left, b none")
                .isInstanceOf(NodeInventory.Answer.Wanting.class);
    }

    private static NodeInventory.Wish wishFor(int ranks, Optional<Integer> perNode) {
        return wish(true, perNode, Collections.nCopies(ranks, MIB));
    }

    @Test
    void thePlacementIsToldByNode() {
        add("a", 100);
        add("b", 100);
        NodeInventory.Wish wish = wish(true, Optional.empty(), List.of(MIB, MIB, MIB));

        NodeInventory.Answer.Granted granted =
                (NodeInventory.Answer.Granted) book.take("run", wish);

        assertThat(PlacementText.placed(granted.nodes(), wish.together()))
                .isEqualTo(
                        "placed: ranks 0-1 on a (a:1, pid 7), 2.0 MiB\n"
                                + "        rank 2 on b (b:1, pid 7), 1.0 MiB");
    }

    @Test
    void aRunThatStaysOnOneHostTakesTheOneWithMostNodes() {
        add("a", 100, "east");
        add("b", 100, "west");
        add("c", 100, "west");

        NodeInventory.Answer here =
                book.take("one", wish(false, Optional.of(1), List.of(MIB, MIB)));
        NodeInventory.Answer nowhere =
                book.take("two", wish(false, Optional.of(1), List.of(MIB, MIB, MIB)));

        assertThat(here)
                .isInstanceOfSatisfying(
                        NodeInventory.Answer.Granted.class,
                        granted ->
                                assertThat(granted.nodes().values())
                                        .extracting(NodeOffer::name)
                                        .containsExactly("b", "c"));
        assertThat(nowhere)
                .isInstanceOfSatisfying(
                        NodeInventory.Answer.Wanting.class,
                        wanting ->
                                assertThat(wanting.line())
                                        .startsWith(
                                                "waits for 1 more node with 1.0 MiB free on one"
                                                        + " host"));
    }

    @Test
    void aRankThatLostItsNodeGoesToAnEmptyOneBeforeItDoublesUp() {
        add("a", 100);
        add("b", 100);
        book.take("run", wish(Optional.of(2), MIB, MIB));
        add("c", 100);
        book.remove(address("b"));

        assertThat(again(1)).isEqualTo(Map.of(1, "c"));
    }

    @Test
    void withoutAnEmptyNodeASurvivorTakesOneMoreIfItsLimitAllows() {
        add("a", 100);
        add("b", 100);
        book.take("run", wish(Optional.of(2), MIB, MIB));
        book.take("strict", wish(Optional.of(1), MIB, MIB));
        book.remove(address("b"));

        assertThat(again(1)).isEqualTo(Map.of(1, "a"));
        assertThat(book.take("strict", wish(Optional.of(1), MIB, MIB).of(Set.of(1), Set.of())))
                .isEqualTo(
                        new NodeInventory.Answer.Wanting(
                                "waits for 1 more node with 1.0 MiB free: 1 rank holds 1.0 MiB, at"
                                        + " most 1 on a node; the 1 node here has 97.0 MiB left"));
    }

    @Test
    void amongEqualNodesTheOneNearItsNeighboursIsTaken() {
        add("a", 100);
        add("b", 100);
        add("c", 100);
        book.take("run", wish(Optional.empty(), MIB, MIB, MIB));
        NodeInventory.Wish five = wish(Optional.empty(), MIB, MIB, MIB, MIB, MIB);
        book.seat("run", five, 3, address("b"));
        book.remove(address("c"));

        // a and b have a rank each but for the extra one on b; rank 2's neighbours are 1 and 3
        book.seat("run", five, 4, address("a"));
        assertThat(again(2)).isEqualTo(Map.of(2, "b"));
    }

    @Test
    void anAvoidedNodeIsNotTakenThoughItIsEmpty() {
        add("a", 100);
        add("b", 100);
        add("c", 100);
        book.take("run", wish(Optional.of(1), MIB, MIB));

        assertThat(
                        names(
                                book.take(
                                        "run",
                                        wish(Optional.of(1), MIB, MIB)
                                                .of(Set.of(1), Set.of(address("b"))))))
                .isEqualTo(Map.of(1, "c"));
    }

    private Map<Integer, String> again(int rank) {
        NodeInventory.Wish all = wish(Optional.of(3), MIB, MIB, MIB, MIB, MIB);
        return names(book.take("run", all.of(Set.of(rank), Set.of())));
    }

    private static NodeInventory.Wish wish(Optional<Integer> most, Long... bytes) {
        return wish(false, most, List.of(bytes));
    }

    /** Of ranks that hold as much wherever they live. */
    private static NodeInventory.Wish wish(
            boolean crossesHosts, Optional<Integer> most, List<Long> bytes) {
        return new NodeInventory.Wish(bytes, _ -> bytes, most, crossesHosts);
    }

    private static Map<Integer, String> names(NodeInventory.Answer answer) {
        Map<Integer, String> names = new TreeMap<>();
        ((NodeInventory.Answer.Granted) answer)
                .nodes()
                .forEach((rank, node) -> names.put(rank, node.name()));
        return names;
    }

    private static String address(String name) {
        return "akka://penstock@" + name + ":1";
    }

    private void add(String name, long mebibytes) {
        add(name, mebibytes, "host");
    }

    private void add(String name, long mebibytes, String host) {
        book.add(
                new NodeOffer(
                        name,
                        address(name),
                        host,
                        7,
                        1,
                        "0.1",
                        List.of("cpu"),
                        mebibytes * MIB,
                        2));
    }
}
