package dev.penstock.schedules.plan.work;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.schedules.plan.CountingHardware;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/**
 * Devices of unequal nodes, numbered consecutively.
 *
 * <pre>
 * big    [0 1 2 3] [4 5 6 7]     small    [8 9] [10 11]     alone    [12]
 * </pre>
 */
class HardwareTest {
    private static final Link BIG_INSIDE = new Link(3, 8e9);
    private static final Link SMALL_INSIDE = new Link(5, 4e9);
    private static final Link ALONE_INSIDE = new Link(2, 6e9);
    private static final Link NETWORK = new Link(11, 1e9);
    private static final Hardware CLUSTER =
            new Hardware(
                    "mixed",
                    List.of(
                            new NodeGroup("big", 2, 4, new DeviceSpec(80, 9e9, 1, 3e9), BIG_INSIDE),
                            new NodeGroup(
                                    "small", 2, 2, new DeviceSpec(40, 5e9, 1, 4e9), SMALL_INSIDE),
                            new NodeGroup(
                                    "alone", 1, 1, new DeviceSpec(60, 7e9, 1, 2e9), ALONE_INSIDE)),
                    NETWORK);

    private static List<String> names(int first, int end) {
        return CLUSTER.groupsOf(first, end).stream().map(NodeGroup::name).toList();
    }

    @Test
    void devicesAreNumberedNodeAfterNode() {
        var names = new ArrayList<String>();
        for (int device = 0; device < CLUSTER.devices(); device++) {
            names.add(CLUSTER.nameOf(device));
        }

        assertThat(names)
                .containsExactly(
                        "big node 0 device 0",
                        "big node 0 device 1",
                        "big node 0 device 2",
                        "big node 0 device 3",
                        "big node 1 device 0",
                        "big node 1 device 1",
                        "big node 1 device 2",
                        "big node 1 device 3",
                        "small node 0 device 0",
                        "small node 0 device 1",
                        "small node 1 device 0",
                        "small node 1 device 1",
                        "alone");
        assertThatThrownBy(() -> CLUSTER.nameOf(13))
                .hasMessage("mixed has 13 devices, there is no device 13");
    }

    @Test
    void aRangeOfDevicesBelongsToTheGroupsThatItTouches() {
        assertThat(names(0, 8)).containsExactly("big");
        assertThat(names(7, 9)).containsExactly("big", "small");
        assertThat(names(8, 12)).containsExactly("small");
        assertThat(names(0, 13)).containsExactly("big", "small", "alone");
    }

    @Test
    void neighboursAreInOneNodeUntilItEnds() {
        assertThat(CLUSTER.isOneNode(0, 4)).isTrue();
        assertThat(CLUSTER.isOneNode(0, 5)).isFalse();
        assertThat(CLUSTER.isOneNode(4, 8)).isTrue();
        assertThat(CLUSTER.isOneNode(3, 5)).isFalse();
        assertThat(CLUSTER.isOneNode(7, 9)).isFalse();
        assertThat(CLUSTER.isOneNode(8, 10)).isTrue();
        assertThat(CLUSTER.isOneNode(12, 13)).isTrue();
    }

    /** Three ranks of four devices: the two big nodes, then both small ones. */
    @Test
    void aRankIsAsSlowAndSmallAsItsSlowestAndSmallestDevice() {
        var layout = new Layout(3, 2, 2);

        assertThat(RankHardware.of(CLUSTER, layout, 1))
                .isEqualTo(new RankHardware(9e9, 3e9, 80, 4e9, 1e9, BIG_INSIDE, BIG_INSIDE));
        // replicas in different nodes: two shards share a node's network
        assertThat(RankHardware.of(CLUSTER, layout, 2))
                .isEqualTo(
                        new RankHardware(
                                5e9, 4e9, 40, 4e9, 1e9, SMALL_INSIDE, new Link(11, 0.5e9)));
        // devices 10 to 12 of a layout of four ranks with three each
        assertThat(RankHardware.of(CLUSTER, new Layout(4, 1, 3), 3))
                .isEqualTo(
                        new RankHardware(5e9, 4e9, 40, 4e9, 1e9, SMALL_INSIDE, new Link(11, 1e9)));
        assertThat(RankHardware.of(CLUSTER, new Layout(1, 1, 13), 0))
                .isEqualTo(
                        new RankHardware(
                                5e9, 2e9, 40, 4e9, 1e9, new Link(5, 4e9), new Link(11, 1e9)));
    }

    /**
     * A configuration may cut like this, though no plan does: a node has no more rings than
     * devices.
     */
    @Test
    void shardsInDifferentNodesShareNoNetworkWithEachOther() {
        Hardware apart = CountingHardware.cluster(4, 1);
        Link network = CountingHardware.NETWORK;

        RankHardware rank = RankHardware.of(apart, new Layout(1, 2, 2), 0);

        assertThat(rank.tensorLink()).isEqualTo(network);
        assertThat(rank.dataLink()).isEqualTo(network);
    }

    /** Devices 0 to 3, 4 and 5, 6 to 9, 10 and 11: the third rank is on a big and a small node. */
    @Test
    void ranksWithDifferentShardsFollowEachOther() {
        var layout = Layout.ofShards(List.of(2, 1, 2, 1), 2);

        assertThat(layout.tensor()).isEqualTo(2);
        assertThat(layout.devices()).isEqualTo(12);
        assertThat(layout.describeShards()).isEqualTo("[2, 1, 2, 1]");
        assertThat(new Layout(3, 2, 1).describeShards()).isEqualTo("2");
        assertThat(IntStream.range(0, 4).map(layout::firstDevice)).containsExactly(0, 4, 6, 10);
        assertThat(IntStream.range(0, 4).map(layout::devicesOf)).containsExactly(4, 2, 4, 2);
        assertThat(RankHardware.of(CLUSTER, layout, 1))
                .isEqualTo(new RankHardware(9e9, 3e9, 80, 4e9, 1e9, BIG_INSIDE, BIG_INSIDE));
        assertThat(RankHardware.of(CLUSTER, layout, 2).flopsPerSecond()).isEqualTo(5e9);
        // as many send as the rank with fewer shards has, over both replicas
        assertThat(RankHardware.hop(CLUSTER, layout, 0, 1)).isEqualTo(new Link(11, 0.5e9));
        assertThat(RankHardware.hop(CLUSTER, layout, 1, 0)).isEqualTo(new Link(11, 0.5e9));
        assertThat(RankHardware.smallestDevice(CLUSTER, layout, 2))
                .isEqualTo("small node 0 device 0");
    }

    @Test
    void aLayoutHasShardsForEachOfItsRanks() {
        assertThatThrownBy(() -> new Layout(3, 2, 1, List.of(1, 2)))
                .hasMessage("expected shards of 3 ranks, 1 to 2, got [1, 2]");
        assertThatThrownBy(() -> new Layout(2, 2, 1, List.of(1, 1)))
                .hasMessage("expected shards of 2 ranks, 1 to 2, got [1, 1]");
    }

    /** All devices of the first groups, no rank on two, and of each two counts one a multiple. */
    @Test
    void groupsMayHaveDifferentShards() {
        var request =
                new PlanRequest(
                        new ModelShape(6, 12, 12, 31, 20, false),
                        CountingHardware.BYTES,
                        new Hardware(
                                "unequal", List.of(group("six", 6), group("four", 4)), NETWORK),
                        2);

        assertThat(Layouts.of(request))
                .filteredOn(Layout::isUneven)
                .containsExactlyInAnyOrder(
                        Layout.ofShards(List.of(1, 1, 1, 1, 1, 1, 2, 2), 1),
                        Layout.ofShards(List.of(1, 1, 1, 1, 1, 1, 4), 1),
                        Layout.ofShards(List.of(2, 2, 2, 1, 1, 1, 1), 1),
                        Layout.ofShards(List.of(2, 2, 2, 4), 1),
                        Layout.ofShards(List.of(3, 3, 1, 1, 1, 1), 1),
                        Layout.ofShards(List.of(6, 1, 1, 1, 1), 1),
                        Layout.ofShards(List.of(6, 2, 2), 1),
                        Layout.ofShards(List.of(1, 1, 1, 2), 2),
                        Layout.ofShards(List.of(3, 1, 1), 2));
    }

    private static NodeGroup group(String name, int devices) {
        return new NodeGroup(name, 1, devices, CountingHardware.DEVICE, CountingHardware.INSIDE);
    }

    @Test
    void tiedEndsHaveEqualShards() {
        var request =
                new PlanRequest(
                        new ModelShape(6, 12, 12, 31, 20, true),
                        CountingHardware.BYTES,
                        new Hardware(
                                "unequal",
                                List.of(group("one", 1), group("two", 2), group("last", 1)),
                                NETWORK),
                        1);

        assertThat(Layouts.of(request))
                .filteredOn(Layout::isUneven)
                .containsExactly(Layout.ofShards(List.of(1, 2, 1), 1));
    }

    @Test
    void aHopStaysInTheNodeOrSharesItsNetwork() {
        var pairs = new Layout(6, 2, 1);

        assertThat(RankHardware.hop(CLUSTER, pairs, 0, 1)).isEqualTo(BIG_INSIDE);
        assertThat(RankHardware.hop(CLUSTER, pairs, 1, 2)).isEqualTo(new Link(11, 0.5e9));
        assertThat(RankHardware.hop(CLUSTER, pairs, 2, 1)).isEqualTo(new Link(11, 0.5e9));
        assertThat(RankHardware.hop(CLUSTER, pairs, 4, 5)).isEqualTo(new Link(11, 0.5e9));
        // no more senders than a rank has devices, nor than a node has
        assertThat(RankHardware.hop(CLUSTER, new Layout(13, 1, 1), 3, 4)).isEqualTo(NETWORK);
        assertThat(RankHardware.hop(CLUSTER, new Layout(2, 1, 6), 0, 1))
                .isEqualTo(new Link(11, 0.25e9));
    }

    @Test
    void aLayoutKnowsTheWayFromEachRankToTheNextAndFromTheLastToTheFirst() {
        var hardware = LayoutHardware.of(CLUSTER, new Layout(4, 2, 1));

        assertThat(hardware.hops())
                .containsExactly(BIG_INSIDE, new Link(11, 0.5e9), BIG_INSIDE, new Link(11, 0.5e9));
        assertThat(hardware.ranks()).hasSize(4);
    }

    @Test
    void theSmallestDeviceOfARankIsNamed() {
        var thirds = new Layout(4, 1, 3);

        assertThat(RankHardware.smallestDevice(CLUSTER, thirds, 0))
                .isEqualTo("big node 0 device 0");
        assertThat(RankHardware.smallestDevice(CLUSTER, thirds, 1))
                .isEqualTo("big node 0 device 3");
        assertThat(RankHardware.smallestDevice(CLUSTER, thirds, 2))
                .isEqualTo("small node 0 device 0");
        assertThat(RankHardware.smallestDevice(CLUSTER, new Layout(13, 1, 1), 12))
                .isEqualTo("alone");
    }

    @Test
    void layoutsAreAllThatDivide() {
        // two heads, so 1 or 2 shards; a lone device has no room for two
        Hardware without = new Hardware("boxes", CLUSTER.groups().subList(0, 2), CLUSTER.network());
        for (Hardware cluster : List.of(CLUSTER, without)) {
            List<Layout> expected = new ArrayList<>();
            for (int tensor = 1; tensor <= (cluster.equals(CLUSTER) ? 1 : 2); tensor++) {
                for (int data : List.of(1, 2, 3, 6)) {
                    for (int pipeline = 1; pipeline <= 4 + 2; pipeline++) {
                        if (pipeline * tensor * data <= cluster.devices()) {
                            expected.add(new Layout(pipeline, tensor, data));
                        }
                    }
                }
            }

            assertThat(Layouts.of(CountingHardware.request(cluster, 6)))
                    .containsExactlyElementsOf(expected);
        }
    }

    @Test
    void equalSlicesDifferByOneTokenAtMost() {
        assertThat(Layouts.equalSlices(12, 3)).containsExactly(4, 4, 4);
        assertThat(Layouts.equalSlices(14, 4)).containsExactly(4, 4, 3, 3);
        assertThat(Layouts.equalSlices(3, 3)).containsExactly(1, 1, 1);
    }
}
