package dev.penstock.actors.cluster;

import static dev.penstock.actors.cluster.CoordinatedCluster.RUN;
import static dev.penstock.actors.cluster.CoordinatedCluster.address;
import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.supervisor.PipelineSupervisor;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Where ranks go, and what becomes of a run when nodes come, go and refuse. */
class ClusterCoordinatorTest {
    private final CoordinatedCluster cluster = new CoordinatedCluster();

    /** A run of two ranks on two nodes that is under way. */
    private CoordinatedCluster underWay() {
        return cluster.introduces("a", 1)
                .introduces("b", 1)
                .keeps(new ImaginedRun(RUN, 2))
                .opens("a")
                .opens("b")
                .sees(0, cluster.process("a"))
                .sees(1, cluster.process("b"));
    }

    // ---- a run begins -----------------------------------------------------------------------

    @Test
    void aRunIsSupervisedWhenAllItsSharesAreBuilt() {
        cluster.introduces("a", 1).introduces("b", 1).keeps(new ImaginedRun(RUN, 2)).opens("a");
        assertThat(cluster.isSupervised()).isFalse();
        assertThat(cluster.standing().state()).isEqualTo(RunState.OPENING);

        cluster.opens("b");

        assertThat(cluster.isSupervised()).isTrue();
        assertThat(cluster.hosting()).containsExactly("a[0]", "b[1]");
        assertThat(cluster.standing().state()).isEqualTo(RunState.RUNNING);
        assertThat(cluster.standing().nodes()).isEqualTo(2);
    }

    @Test
    void aRunWaitsForRoomAndTakesTheNodeThatComes() {
        cluster.introduces("a", 1).keeps(new ImaginedRun(RUN, 2));

        assertThat(cluster.standing().state()).isEqualTo(RunState.WAITING);
        assertThat(cluster.standing().detail()).startsWith("waits for 1 more node");
        assertThat(cluster.of(ClusterEffect.TellPeople.class)).hasSize(1);
        cluster.waits(Duration.ofMinutes(5));
        assertThat(cluster.of(ClusterEffect.TellPeople.class)).as("said once").hasSize(1);

        cluster.introduces("b", 1);

        assertThat(cluster.opened()).containsExactly("a", "b");
    }

    @Test
    void theRoomOfARunThatEndsIsTheNextOnes() {
        underWay().keeps(new ImaginedRun("next-1", 2));
        assertThat(cluster.standing("next-1").state()).isEqualTo(RunState.WAITING);

        cluster.coordinator.onEnded(RUN, new RunOutcome.Completed(9), cluster.now);
        cluster.waits(Duration.ofSeconds(1));

        assertThat(cluster.standing().state()).isEqualTo(RunState.COMPLETED);
        assertThat(cluster.closed()).containsExactlyInAnyOrder("a", "b");
        assertThat(cluster.standing("next-1").state()).isEqualTo(RunState.OPENING);
    }

    @Test
    void aNodeThatDiesWhileSharesAreBuiltSendsTheRunBackToItsWait() {
        cluster.introduces("a", 1).introduces("b", 1).keeps(new ImaginedRun(RUN, 2)).opens("a");

        cluster.dies("b");
        assertThat(cluster.standing().state()).isEqualTo(RunState.WAITING);
        assertThat(cluster.closed()).contains("a");
        cluster.forget().introduces("c", 1);

        assertThat(cluster.opened()).containsExactlyInAnyOrder("a", "c");
    }

    @Test
    void sharesThatAreNotBuiltInTimeEndTheRun() {
        cluster.introduces("a", 2).keeps(new ImaginedRun(RUN, 2)).waits(Duration.ofSeconds(61));

        assertThat(cluster.standing().state()).isEqualTo(RunState.FAILED);
        assertThat(cluster.standing().detail()).contains("a (a:1, pid 1)", "timeouts.start");
        assertThat(cluster.of(ClusterEffect.End.class)).hasSize(1);
    }

    @Test
    void aNodeThatCannotTakePartEndsARunThatHasNotBegun() {
        cluster.introduces("a", 2).keeps(new ImaginedRun(RUN, 2)).refuses("a");

        assertThat(cluster.standing().detail()).contains("cannot take part: it has another plan");
        assertThat(cluster.standing().state()).isEqualTo(RunState.FAILED);
    }

    @Test
    void aRunThatWaitsCanBeStopped() {
        cluster.keeps(new ImaginedRun(RUN, 2)).stops();

        assertThat(cluster.of(ClusterEffect.End.class))
                .extracting(ClusterEffect.End::outcome)
                .containsExactly(new RunOutcome.Interrupted(0));
    }

    // ---- nodes die, come back, refuse -------------------------------------------------------

    @Test
    void theRanksOfADeadNodeGoToOneThatHasRoom() {
        underWay().introduces("c", 1).forget();

        cluster.dies("b").wants(1).opens("c");

        assertThat(cluster.toldSupervisor())
                .containsExactly(
                        new PipelineSupervisor.NodeDied(
                                cluster.process("b"), false, "it left the cluster"),
                        new PipelineSupervisor.NodeBack(cluster.process("c")));
        assertThat(cluster.hosting()).containsExactly("c[1]");
    }

    @Test
    void ranksWithoutRoomAreWaitedForAndTheSupervisorKnows() {
        underWay().dies("b").wants(1).waits(Duration.ofSeconds(3));

        assertThat(cluster.of(ClusterEffect.TellSupervisor.class))
                .extracting(ClusterEffect.TellSupervisor::command)
                .filteredOn(PipelineSupervisor.NoRoom.class::isInstance)
                .hasSizeGreaterThanOrEqualTo(4);
        cluster.forget().introduces("c", 1).opens("c");
        assertThat(cluster.hosting()).containsExactly("c[1]");
    }

    @Test
    void whatComesBackAtADeadNodesAddressIsAnotherNode() {
        underWay();
        String former = cluster.process("b");
        cluster.forget().introduces("b", 1);

        assertThat(cluster.process("b")).isNotEqualTo(former);
        assertThat(cluster.toldSupervisor())
                .containsExactly(
                        new PipelineSupervisor.NodeDied(
                                former, false, "its process was started anew"));
        cluster.wants(1).opens("b");
        assertThat(cluster.hosting()).containsExactly("b[1]");

        cluster.forget().coordinator.onNodeGone(former, "its connection closed late", cluster.now);
        assertThat(cluster.coordinator.drain()).isEmpty();
    }

    /** Containers all have process number 1, and may well have one name. */
    @Test
    void membersOfOneNameAreToldApart() {
        cluster.introduces(cluster.joins("worker", "a", 1))
                .introduces(cluster.joins("worker", "b", 1))
                .keeps(new ImaginedRun(RUN, 2))
                .opens("a")
                .opens("b")
                .sees(0, cluster.process("a"))
                .sees(1, cluster.process("b"));

        assertThat(cluster.process("a")).isNotEqualTo(cluster.process("b"));
        assertThat(cluster.standing().nodes()).isEqualTo(2);
        cluster.forget().dies("b").wants(1);
        assertThat(cluster.toldSupervisor())
                .containsExactly(
                        new PipelineSupervisor.NodeDied(
                                cluster.process("b"), false, "it left the cluster"));
    }

    @Test
    void aNodeThatWasTakenForDeadIsSaidToBeBackBeforeItHostsRanksAgain() {
        NodeOffer b = underWay().offer("b");
        cluster.coordinator.onNodeGone(b.process(), "it left the cluster", cluster.now);
        cluster.forget().introduces(b).wants(1).opens("b");

        assertThat(cluster.effects())
                .containsSubsequence(
                        new ClusterEffect.TellSupervisor(
                                RUN, new PipelineSupervisor.NodeBack(b.process())),
                        new ClusterEffect.OpenShare(RUN, address("b"), 5, true),
                        new ClusterEffect.HostRanks(
                                RUN, address("b"), 6, List.of(1), "driver of b", Optional.empty()));
    }

    @Test
    void aNodeWhereARankFellSilentIsAvoided() {
        underWay().introduces("c", 1).forget().wants(1);

        assertThat(cluster.opened()).containsExactly("c");
    }

    @Test
    void aNodeThatRefusesARunUnderWayIsAvoided() {
        underWay().introduces("c", 1).introduces("d", 1).dies("b").wants(1).forget();

        cluster.refuses("c").wants();

        assertThat(cluster.opened()).containsExactly("d");
    }

    /** It did not see its seed for too long; nothing is wrong with it. */
    @Test
    void aNodeThatGaveItsShareUpMayHaveAnother() {
        underWay().introduces("c", 1).dies("b").wants(1);
        long open = cluster.of(ClusterEffect.OpenShare.class).getLast().number();
        cluster.answersOpen("c", open).forget();

        cluster.hasGivenUp("c").wants().opens("c");

        assertThat(cluster.opened()).containsExactly("c");
        assertThat(cluster.hosting()).containsExactly("c[1]");
    }

    @Test
    void whatASupervisorSaysLateOfANodeThatIsGoneChangesNothing() {
        underWay();
        String gone = cluster.process("b");
        cluster.dies("b").sees(1, gone).introduces("c", 2).wants(1).opens("c");

        assertThat(cluster.hosting()).endsWith("c[1]");
        assertThat(cluster.standing().nodes()).isEqualTo(2);
    }

    @Test
    void ranksGoToTheirMirrorsOnlyIfAllOfThemHaveRoom() {
        cluster.introduces("a", 2).introduces("b", 2).introduces("c", 1);
        cluster.keeps(new ImaginedRun(RUN, 4)).opens("a").opens("b");
        String a = cluster.process("a");

        assertThat(cluster.coordinator.takeIn(RUN, Map.of(3, "nobody/1/1"))).isFalse();
        assertThat(cluster.coordinator.takeIn(RUN, Map.of(2, a, 3, a))).isFalse();
        assertThat(cluster.coordinator.takeIn("other-1", Map.of(3, a))).isFalse();
    }

    @Test
    void crowdedRanksMoveToANodeThatCameLater() {
        cluster.introduces("a", 4).keeps(new ImaginedRun(RUN, 4)).opens("a").introduces("b", 4);

        assertThat(cluster.coordinator.rebalance(RUN))
                .hasValueSatisfying(line -> assertThat(line).contains("go to emptier nodes"));

        assertThat(cluster.waits(Duration.ofSeconds(1)).toldSupervisor())
                .anyMatch(PipelineSupervisor.Move.class::isInstance);
        assertThat(cluster.coordinator.rebalance("other-1")).isEmpty();
    }

    @Test
    void aRunThatSpreadsByItselfUsesANodeThatCameLater() {
        cluster.introduces("a", 4).keeps(new ImaginedRun(RUN, 4).spreading()).opens("a");
        assertThat(cluster.moves()).isEmpty();

        cluster.introduces("b", 4);
        assertThat(cluster.moves()).containsExactly(Set.of(2, 3));
    }

    @Test
    void aRankThatWaitedInVainIsTakenInBeyondTheLimitAndGoesOnToANodeThatJoins() {
        cluster.introduces("a", 2).introduces("b", 2);
        cluster.keeps(new ImaginedRun(RUN, 2).atMostOnANode(1).spreading());
        cluster.opens("a").opens("b");
        cluster.sees(0, cluster.process("a")).sees(1, cluster.process("b"));
        cluster.dies("b").wants(1).recovers().waits(Duration.ofSeconds(1));
        assertThat(cluster.saysThatThereIsNoRoom()).isTrue();

        assertThat(cluster.coordinator.takeIn(RUN, Map.of(1, cluster.process("a")))).isTrue();
        cluster.sees(1, cluster.process("a")).recovered(4);
        cluster.forget().waits(Duration.ofSeconds(1));
        assertThat(cluster.saysThatThereIsNoRoom()).isFalse();

        cluster.introduces("c", 1);
        assertThat(cluster.moves()).containsExactly(Set.of(1));
    }

    /** So that no step is lost; then the run is as its limit wants it again, and has mirrors. */
    @Test
    void aRankThatItsMirrorsHolderTookInBeyondTheLimitGoesOnToAFreeNode() {
        CoordinatedCluster taken = takenInBeyondTheLimit();
        taken.introduces("c", 1);

        assertThat(taken.moves()).containsExactly(Set.of(1));
        taken.forget().keeps(new ImaginedRun("next-1", 1));
        assertThat(taken.opened()).as("the room is kept for the rank").isEmpty();

        taken.recovers().wants(1).opens("c");
        assertThat(taken.hosting()).containsExactly("c[1]");
        taken.sees(1, taken.process("c")).recovered(5);
        assertThat(taken.moves()).as("all is as it should be").isEmpty();
    }

    @Test
    void aNodeThatIsFreeAlreadyIsTakenWhenAllTrainAgain() {
        cluster.introduces("a", 2).introduces("b", 2);
        cluster.keeps(new ImaginedRun(RUN, 2).atMostOnANode(1)).opens("a").opens("b");
        cluster.sees(0, cluster.process("a")).sees(1, cluster.process("b")).introduces("c", 1);
        cluster.dies("b").recovers();
        assertThat(cluster.coordinator.takeIn(RUN, Map.of(1, cluster.process("a")))).isTrue();
        cluster.sees(1, cluster.process("a"));
        assertThat(cluster.moves()).as("it recovers").isEmpty();

        cluster.recovered(4);

        assertThat(cluster.moves()).containsExactly(Set.of(1));
    }

    @Test
    void roomIsKeptNoLongerWhereTheStepCouldNotBeSaved() {
        CoordinatedCluster taken = takenInBeyondTheLimit();
        taken.introduces("c", 1).keeps(new ImaginedRun("next-1", 1));
        assertThat(taken.standing("next-1").state()).isEqualTo(RunState.WAITING);

        taken.coordinator.onStep(RUN, 8, taken.now);
        taken.introduces("d", 0);

        assertThat(taken.standing("next-1").state()).isEqualTo(RunState.OPENING);
    }

    private CoordinatedCluster takenInBeyondTheLimit() {
        cluster.introduces("a", 2).introduces("b", 2);
        cluster.keeps(new ImaginedRun(RUN, 2).atMostOnANode(1)).opens("a").opens("b");
        cluster.sees(0, cluster.process("a")).sees(1, cluster.process("b"));
        cluster.dies("b").recovers();
        assertThat(cluster.coordinator.takeIn(RUN, Map.of(1, cluster.process("a")))).isTrue();
        cluster.sees(1, cluster.process("a")).recovered(4).forget();
        assertThat(cluster.moves()).as("no node is free").isEmpty();
        return cluster;
    }

    @Test
    void ranksThatFoundANodeByThemselvesWantNoRoom() {
        underWay().wants(1);
        cluster.sees(1, cluster.process("b")).introduces("c", 1);

        assertThat(cluster.opened()).as("no other share").containsExactly("a", "b");
    }

    /** It stands still, and may go on. */
    @Test
    void aSilentRankKeepsItsRoomUntilItHasAnother() {
        underWay().keeps(new ImaginedRun("next-1", 1)).wants(1);
        assertThat(cluster.standing("next-1").state()).isEqualTo(RunState.WAITING);

        cluster.introduces("c", 1);

        assertThat(cluster.opened()).containsExactly("a", "b", "c", "b");
        assertThat(cluster.standing("next-1").state()).isEqualTo(RunState.OPENING);
    }

    @Test
    void aRunWaitsForRoomThatRunsOfAFormerSeedMayHave() {
        cluster.coordinator.onLooking(cluster.now);
        cluster.introduces("a", 1).keeps(new ImaginedRun(RUN, 1));
        assertThat(cluster.opened()).isEmpty();
        assertThat(cluster.standing().detail()).contains("that lost their seed");

        var former = new ImaginedRun("former-1", 1, Map.of(0, cluster.process("a")));
        cluster.keeps(former);
        cluster.coordinator.onLooked(Set.of(), cluster.now);
        assertThat(cluster.waits(Duration.ofSeconds(1)).opened())
                .as("the node has not said what it has")
                .isEmpty();

        cluster.waits(ClusterRun.LEAST_PATIENCE.plusSeconds(2));
        assertThat(cluster.opened()).as("nobody has kept a share for longer").hasSize(1);
    }

    @Test
    void aRunThatIsLockedElsewhereHoldsOthersBackOnItsOwnNodesOnly() {
        cluster.coordinator.onLooking(cluster.now);
        cluster.introduces("a", 1).introduces("b", 1).keeps(new ImaginedRun(RUN, 1));
        cluster.keeps(new ImaginedRun("next-1", 1));

        cluster.coordinator.onLooked(Set.of(cluster.process("a")), cluster.now);

        assertThat(cluster.waits(Duration.ofSeconds(1)).opened()).containsExactly("b");
        assertThat(cluster.standing("next-1").detail()).contains("that lost their seed");
        cluster.coordinator.onLooked(Set.of(), cluster.now);
        assertThat(cluster.waits(Duration.ofSeconds(1)).opened())
                .as("its lock is free")
                .containsExactly("b", "a");
    }

    @Test
    void runsThatNobodyFindsAreNotWaitedForForEver() {
        cluster.coordinator.onLooking(cluster.now);
        cluster.introduces("a", 1).keeps(new ImaginedRun(RUN, 1));

        assertThat(cluster.waits(ClusterRun.LEAST_PATIENCE.plusSeconds(1)).opened())
                .containsExactly("a");
    }

    // ---- shares that are let go -------------------------------------------------------------

    @Test
    void nodesAreToldToLetGoUntilTheySayThatTheyHave() {
        underWay().coordinator.onEnded(RUN, new RunOutcome.Completed(9), cluster.now);
        cluster.waits(Duration.ofSeconds(1)).hasNothing("a").forget();

        assertThat(cluster.waits(PATIENCE).closed()).containsExactly("b");
        assertThat(cluster.forget().hasNothing("b").waits(PATIENCE).effects()).isEmpty();
    }

    @Test
    void aNodeThatRefusesARunUnderWayIsToLetGoOfIt() {
        underWay().dies("b").introduces("c", 1).wants(1).forget().refuses("c");

        assertThat(cluster.closed()).containsExactly("c");
    }

    @Test
    void aNodeWithoutARankIsToLetGoWhenAllRanksAreBack() {
        underWay().introduces("c", 1).wants(1).opens("c").sees(1, cluster.process("c"));
        assertThat(cluster.closed()).isEmpty();

        cluster.coordinator.onRecovered(RUN, 4, cluster.now);

        assertThat(cluster.waits(Duration.ofSeconds(1)).closed()).containsExactly("b");
        assertThat(cluster.standing().nodes()).isEqualTo(2);
    }

    /** It would host the rank a second time, in room that others count on. */
    @Test
    void aShareThatIsBuiltWhenItsRankHasAnotherPlaceIsLetGo() {
        underWay().introduces("c", 1).wants(1).sees(1, cluster.process("a"));
        cluster.coordinator.onRecovered(RUN, 4, cluster.now);

        cluster.waits(Duration.ofSeconds(1)).forget().opens("c");

        assertThat(cluster.hosting()).isEmpty();
        assertThat(cluster.closed()).containsExactly("c");
    }

    /** Its share would keep its memory, which other runs count on. */
    @Test
    void aNodeThatWasTakenForDeadIsToLetGo() {
        NodeOffer b = underWay().offer("b");
        cluster.coordinator.onNodeGone(b.process(), "it left the cluster", cluster.now);
        assertThat(cluster.forget().waits(PATIENCE).closed()).as("nobody is there").isEmpty();

        assertThat(cluster.introduces(b).closed()).containsExactly("b");
        assertThat(cluster.waits(PATIENCE).closed()).as("again").containsExactly("b", "b");
        assertThat(cluster.forget().hasNothing("b").waits(PATIENCE).closed()).isEmpty();
    }

    // ---- messages that are lost -------------------------------------------------------------

    private static final Duration PATIENCE = Duration.ofSeconds(10);

    @Test
    void anOrderThatNobodyAnswersIsGivenAgainUntilSomebodyDoes() {
        cluster.introduces("a", 2).keeps(new ImaginedRun(RUN, 2));
        var open = new ClusterEffect.OpenShare(RUN, address("a"), 1, true);
        assertThat(cluster.forget().waits(PATIENCE).effects()).containsExactly(open);
        assertThat(cluster.forget().waits(PATIENCE).effects()).containsExactly(open);

        cluster.forget().answersOpen("a", 1);
        var host =
                new ClusterEffect.HostRanks(
                        RUN, address("a"), 2, List.of(0, 1), "driver of a", Optional.empty());
        assertThat(cluster.of(ClusterEffect.HostRanks.class)).containsExactly(host);
        assertThat(cluster.forget().waits(PATIENCE).effects()).containsExactly(host);

        cluster.forget().hosts("a", 2);
        assertThat(cluster.waits(PATIENCE).effects()).isEmpty();
    }

    /** The order was given twice, and so it is answered. */
    @Test
    void anAnswerThatComesAgainChangesNothing() {
        underWay().driverDies("a").wantsDrivers().driverStarts("a", "another").forget();

        cluster.driverStarts("a", "another").answersOpen("a", 1).hosts("a", 3);

        assertThat(cluster.effects()).isEmpty();
    }

    @Test
    void nobodyIsToldAgainWhatHoldsNoMore() {
        cluster.introduces("a", 2).keeps(new ImaginedRun(RUN, 2)).dies("a").forget();

        assertThat(cluster.waits(PATIENCE).of(ClusterEffect.Order.class)).isEmpty();
    }

    /** It may come late, when another is being started or has started. */
    @Test
    void theDeathOfADriverMayBeToldAgain() {
        underWay().driverDies("a").forget();
        assertThat(cluster.driverDies("a").wantsDrivers().driverDies("a").toldSupervisor())
                .isEmpty();

        cluster.driverStarts("a", "another").forget();
        assertThat(cluster.driverDies("a").toldSupervisor()).isEmpty();

        assertThat(cluster.driverDies("a", "another").toldSupervisor())
                .containsExactly(new PipelineSupervisor.LinkDied("another", "kill -9"));
    }

    // ---- drivers ----------------------------------------------------------------------------

    @Test
    void aDriverThatDiedIsStartedAgainByANodeOfItsHost() {
        underWay().forget().driverDies("a").wantsDrivers();

        assertThat(cluster.of(ClusterEffect.StartDriver.class))
                .containsExactly(new ClusterEffect.StartDriver(RUN, address("a"), 5));
        cluster.driverStarts("a", "another");
        assertThat(cluster.toldSupervisor())
                .containsExactly(
                        new PipelineSupervisor.LinkDied("driver of a", "kill -9"),
                        new PipelineSupervisor.LinkRestarted("driver of a", "another"));
    }

    /**
     * Whoever started it may have died as well, and the cluster takes its time to remove a member.
     */
    @Test
    void aDriverThatRanksFindGoneIsStartedAgainByAnotherNodeOfItsHost() {
        cluster.introduces("a", 1)
                .introduces(cluster.joins("b", "b", "host of a", 1))
                .keeps(new ImaginedRun(RUN, 2))
                .opens("a")
                .opens("b")
                .forget();

        cluster.wantsDrivers("driver of a");

        assertThat(cluster.of(ClusterEffect.StartDriver.class))
                .containsExactly(new ClusterEffect.StartDriver(RUN, address("b"), 5));
        cluster.driverStarts("b", "another");
        assertThat(cluster.toldSupervisor())
                .containsExactly(new PipelineSupervisor.LinkRestarted("driver of a", "another"));
        assertThat(cluster.forget().driverDies("a").toldSupervisor()).as("is known").isEmpty();
        assertThat(cluster.dies("a").toldSupervisor())
                .as("it took no driver along")
                .containsExactly(
                        new PipelineSupervisor.NodeDied(
                                cluster.process("a"), false, "it left the cluster"));
    }

    @Test
    void whereNobodyElseIsOnItsHostItsOwnNodeStartsADriverAgain() {
        underWay().forget().wantsDrivers("driver of a");

        assertThat(cluster.of(ClusterEffect.StartDriver.class))
                .containsExactly(new ClusterEffect.StartDriver(RUN, address("a"), 5));
    }

    @Test
    void whereNoDriverIsMissingTheSupervisorIsAnsweredAtOnce() {
        underWay().forget().wantsDrivers();

        assertThat(cluster.toldSupervisor())
                .containsExactly(new PipelineSupervisor.LinkRestarted("", ""));
    }

    /** It comes with the share of its node, of which the supervisor is told. */
    @Test
    void theFirstDriverOfAnotherHostIsNotWaitedFor() {
        underWay().introduces("c", 1).wants(1).forget().wantsDrivers();

        assertThat(cluster.toldSupervisor())
                .containsExactly(new PipelineSupervisor.LinkRestarted("", ""));
    }
}
