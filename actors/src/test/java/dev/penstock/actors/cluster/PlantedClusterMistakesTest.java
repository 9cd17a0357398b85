package dev.penstock.actors.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.cluster.ClusterScenario.Kind;
import dev.penstock.actors.simulation.AlteredClasses;
import dev.penstock.actors.simulation.QuietLog;
import java.util.List;
import java.util.stream.Collectors;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * The power of {@link ClusterFaultsTest}: each of these mistakes, planted into the real sources, is
 * found within 40 clusters, most with more harm of the kinds that bring it to light. That a seed
 * which was replaced must not close a share is for {@link ClusterNodeTest}: to members that the
 * cluster has removed nobody listens here.
 */
@ExtendWith(QuietLog.class)
class PlantedClusterMistakesTest {
    private static final long SEEDS = 40;

    /** A mistake: what stands in the source once, and what would be wrong in its place. */
    enum Mistake {
        NODE_THAT_STARTED_ANEW_IS_TAKEN_FOR_THE_FORMER(
                0,
                List.of(Kind.KILL_NODE, Kind.LATE_LAST_WORDS),
                "ClusterCoordinator",
                "known.ifPresent(former -> lost(former, \"its process was started anew\", now));",
                ""),
        ROOM_OF_A_RUN_THAT_ENDED_IS_NOT_GIVEN_BACK(
                "KeptRun", "        nodes.release(made.name());\n        switch", "        switch"),
        ORDERS_ARE_GIVEN_ONCE(
                350,
                List.of(),
                "UnansweredOrders",
                "++each.seconds % SECONDS == 0",
                "++each.seconds < 0"),
        ANSWER_TO_ONE_ORDER_COUNTS_FOR_ALL(
                25,
                List.of(
                        Kind.LOST_MESSAGES_OF_NODE,
                        Kind.LOST_MESSAGES_OF_SEED,
                        Kind.ALL_MESSAGES_LOST,
                        Kind.KILL_NODE),
                "UnansweredOrders",
                "each.order.node().equals(node) && each.order.number() == number",
                "each.order.node().equals(node)"),
        SHARE_IS_BUILT_AT_EACH_ORDER(
                0,
                List.of(
                        Kind.LOST_MESSAGES_OF_NODE,
                        Kind.LOST_MESSAGES_OF_SEED,
                        Kind.ALL_MESSAGES_LOST),
                "ClusterNode",
                "share != null && share.order().equals(open)",
                "share != null && share.order().order() < 0"),
        KEPT_SHARE_IS_DENIED(
                0,
                List.of(Kind.KILL_SEED),
                "ClusterNode",
                "tell(runId, new NodeRun.Adopt(owner));",
                "owner.tell(new ShareAbsent(offer.address()));"),
        ORDER_IS_DONE_TWICE(
                10,
                List.of(
                        Kind.LOST_MESSAGES_OF_NODE,
                        Kind.LOST_MESSAGES_OF_SEED,
                        Kind.ALL_MESSAGES_LOST),
                "NodeRun",
                "return known == null;",
                "return true;"),
        NUMBERS_OF_ANOTHER_OWNER_COUNT(
                140,
                List.of(),
                "NodeRun",
                "answers.clear(); // another owner's orders have numbers of their own",
                ""),
        SHARE_IS_NEVER_GIVEN_UP(
                0,
                List.of(Kind.KILL_SEED),
                "NodeRun",
                "timers.startSingleTimer(new GiveUp(), patience);",
                ""),
        SHARE_IS_GIVEN_UP_THOUGH_IT_HAS_AN_OWNER_AGAIN(
                260,
                List.of(Kind.KILL_SEED, Kind.REBALANCE),
                "NodeRun",
                "timers.cancel(new GiveUp());",
                ""),
        ROOM_OF_OTHER_RUNS_IS_NOT_COUNTED(
                "NodeInventory", "offer.memoryBytes() - taken", "offer.memoryBytes()"),
        ROOM_OF_RUNS_THAT_ARE_LOCKED_IS_GIVEN_AWAY(
                0,
                List.of(Kind.KILL_SEED),
                "ClusterCoordinator",
                "looking || heldElsewhere.contains(node.process())",
                "looking"),
        LIMIT_OF_RANKS_PER_NODE_IS_NOT_COUNTED(
                "RankPlacement", "ranks -= groups.get(end).ranks().size();", "");

        private final long firstSeed;
        private final String harms;
        private final String type;
        private final String right;
        private final String wrong;

        Mistake(String type, String right, String wrong) {
            this(0, List.of(), type, right, wrong);
        }

        /**
         * @param firstSeed so many seeds before it do not show the mistake
         * @param harms kinds of what goes wrong, the ones that bring it to light; any if empty
         */
        Mistake(long firstSeed, List<Kind> harms, String type, String right, String wrong) {
            this.firstSeed = firstSeed;
            this.harms = harms.stream().map(Enum::name).collect(Collectors.joining(" "));
            this.type = type;
            this.right = right;
            this.wrong = wrong;
        }
    }

    @ParameterizedTest
    @EnumSource
    void theSeedsFindEachMistake(Mistake mistake) throws Exception {
        var actors = new AlteredClasses("cluster/" + mistake.type, mistake.right, mistake.wrong);

        var found =
                actors.find(
                        SeededClusters.class,
                        "firstFailure",
                        mistake.firstSeed,
                        mistake.firstSeed + SEEDS,
                        mistake.harms);

        assertThat(found).as("%s: nothing was violated in %d clusters", mistake, SEEDS).isPresent();
    }
}
