package dev.penstock.actors.cluster;

import static dev.penstock.actors.cluster.CoordinatedCluster.RUN;
import static dev.penstock.actors.cluster.CoordinatedCluster.address;
import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.supervisor.PipelineSupervisor;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** A run whose seed is gone: who is asked, who is waited for, and what is nowhere. */
class RunTakeoverTest {
    private static final Duration SETTLING = RunTakeover.SETTLING.plusSeconds(1);

    private final CoordinatedCluster cluster = new CoordinatedCluster();
    private final NodeOffer a = cluster.joins("a", "a", 1);
    private final NodeOffer b = cluster.joins("b", "b", 1);

    private ImaginedRun lost() {
        return new ImaginedRun(RUN, 2, Map.of(0, a.process(), 1, b.process()));
    }

    // ---- who is waited for ------------------------------------------------------------------

    @Test
    void aRunGoesOnAsSoonAsEveryRankIsInAShare() {
        cluster.introduces(a).introduces(b).keeps(lost()).hasKept("a", 0);
        assertThat(cluster.isSupervised()).isFalse();

        cluster.hasKept("b", 1);

        assertThat(cluster.isSupervised()).isTrue();
        assertThat(cluster.toldSupervisor()).as("nobody is nowhere").isEmpty();
        assertThat(cluster.standing().state()).isEqualTo(RunState.RECOVERING);
        assertThat(cluster.standing().step()).isEqualTo(ImaginedRun.COMPLETED);
    }

    @Test
    void aMemberThatIntroducesItselfLateIsWaitedFor() {
        cluster.introduces(a).keeps(lost()).hasKept("a", 0).waits(Duration.ofSeconds(20));
        assertThat(cluster.isSupervised()).isFalse();

        cluster.introduces(b);
        assertThat(cluster.of(ClusterEffect.AskForShare.class))
                .contains(new ClusterEffect.AskForShare(RUN, address("b")));
        cluster.waits(Duration.ofSeconds(6)).hasKept("b", 1);

        assertThat(cluster.isSupervised()).isTrue();
        assertThat(cluster.toldSupervisor()).isEmpty();
    }

    @Test
    void aNodeThatIsNoMemberIsNotWaitedFor() {
        cluster.introduces(a).keeps(lost()).hasKept("a", 0).leaves("b").waits(SETTLING);

        assertThat(cluster.toldSupervisor())
                .containsExactly(new PipelineSupervisor.Nowhere(Set.of(1)));
    }

    @Test
    void nobodyIsWaitedForLongerThanNodesKeepTheirShares() {
        cluster.introduces(a).keeps(lost()).hasKept("a", 0);
        Duration patience = ClusterRun.patience(lost().plan().timeouts());

        cluster.waits(patience.minusSeconds(1));
        assertThat(cluster.isSupervised()).isFalse();
        cluster.waits(Duration.ofSeconds(2));

        assertThat(cluster.toldSupervisor())
                .containsExactly(new PipelineSupervisor.Nowhere(Set.of(1)));
    }

    @Test
    void aNodeThatKeptNothingIsNotWaitedFor() {
        cluster.introduces(a).introduces(b).keeps(lost()).hasKept("a", 0).hasNothing("b");

        assertThat(cluster.toldSupervisor())
                .containsExactly(new PipelineSupervisor.Nowhere(Set.of(1)));
    }

    @Test
    void theQuestionIsAskedAgainUntilItIsAnswered() {
        cluster.introduces(a).introduces(b).keeps(lost()).hasKept("a", 0).forget();

        cluster.waits(Duration.ofSeconds(3));

        assertThat(cluster.of(ClusterEffect.AskForShare.class))
                .hasSize(3)
                .containsOnly(new ClusterEffect.AskForShare(RUN, address("b")));
    }

    /** Its share would be adopted and closed at once. */
    @Test
    void aNodeThatWasAwayWhileItWasAskedIsAskedAgainAndNotToldToLetGo() {
        cluster.introduces(a).introduces(b).keeps(lost()).hasKept("a", 0);
        cluster.coordinator.onNodeGone(a.process(), "it left the cluster", cluster.now);

        cluster.introduces(a).waits(Duration.ofSeconds(20));
        assertThat(cluster.closed()).isEmpty();
        assertThat(cluster.forget().hasKept("a", 0).hasKept("b", 1).closed()).isEmpty();

        assertThat(cluster.isSupervised()).isTrue();
    }

    @Test
    void whereTheJournalNamesNoNodesAllAreAskedForAWhile() {
        cluster.introduces(a).keeps(new ImaginedRun(RUN, 2, Map.of())).hasKept("a", 0);
        cluster.waits(Duration.ofSeconds(4)).introduces(b).waits(Duration.ofSeconds(10));
        assertThat(cluster.isSupervised()).as("b was asked and has not answered").isFalse();

        cluster.hasNothing("b");

        assertThat(cluster.toldSupervisor())
                .containsExactly(new PipelineSupervisor.Nowhere(Set.of(1)));
    }

    // ---- shares -----------------------------------------------------------------------------

    @Test
    void aShareThatComesLateIsAdoptedWhereItsRanksHaveNoNodeYet() {
        cluster.introduces(a).keeps(lost()).hasKept("a", 0).leaves("b").waits(SETTLING).forget();
        cluster.wants(1);

        cluster.introduces(b).hasKept("b", 1);

        assertThat(cluster.closed()).isEmpty();
        assertThat(cluster.standing().nodes()).isEqualTo(2);
    }

    @Test
    void aShareThatComesTooLateIsClosed() {
        cluster.introduces(a).keeps(lost()).hasKept("a", 0).leaves("b");
        cluster.waits(SETTLING).wants(1);
        cluster.introduces("c", 1).opens("c");
        assertThat(cluster.hosting()).containsExactly("c[1]");

        cluster.introduces(b).hasKept("b", 1);

        assertThat(cluster.closed()).containsExactly("b");
    }

    @Test
    void aSecondAnswerChangesNothing() {
        cluster.introduces(a).introduces(b).keeps(lost()).hasKept("a", 0).hasKept("b", 1).forget();

        cluster.hasKept("b", 1).hasKept("a", 0);

        assertThat(cluster.effects()).isEmpty();
    }

    @Test
    void ofTwoNodesWithOneRankTheJournalsCounts() {
        NodeOffer c = cluster.joins("c", "c", 1);
        cluster.introduces(a).introduces(b).introduces(c);

        cluster.keeps(lost()).hasKept("c", 1).hasKept("b", 1).hasKept("a", 0).forget().dies("b");

        assertThat(cluster.toldSupervisor()).contains(new PipelineSupervisor.Nowhere(Set.of(1)));
    }

    @Test
    void ranksWhoseNodeDiesBeforeTheyIntroducedThemselvesAreNowhere() {
        cluster.introduces(a).introduces(b).keeps(lost()).hasKept("a", 0).hasKept("b", 1);

        cluster.dies("b");

        assertThat(cluster.toldSupervisor())
                .containsExactly(
                        new PipelineSupervisor.NodeDied(b.process(), false, "it left the cluster"),
                        new PipelineSupervisor.Nowhere(Set.of(1)));
    }

    @Test
    void aShareIsForgottenIfItsNodeDiesWhileOthersAreAsked() {
        cluster.introduces(a).introduces(b).keeps(lost()).hasKept("b", 1).dies("b");
        assertThat(cluster.isSupervised()).isFalse();

        cluster.hasKept("a", 0).waits(SETTLING);

        assertThat(cluster.toldSupervisor())
                .containsExactly(new PipelineSupervisor.Nowhere(Set.of(1)));
    }

    @Test
    void aNodeThatWasOnlyAwayIsAskedAgain() {
        cluster.introduces(a).introduces(b).keeps(lost()).hasKept("b", 1);
        cluster.coordinator.onNodeGone(b.process(), "it left the cluster", cluster.now);
        cluster.waits(SETTLING).hasKept("a", 0);
        assertThat(cluster.isSupervised()).as("b is a member").isFalse();

        cluster.forget().introduces(b).hasKept("b", 1);

        assertThat(cluster.of(ClusterEffect.AskForShare.class)).hasSize(1);
        assertThat(cluster.isSupervised()).isTrue();
        assertThat(cluster.toldSupervisor()).isEmpty();
    }

    @Test
    void aHostWhoseDriverWentWithItsNodeGetsAnother() {
        cluster.introduces(a).introduces(b).keeps(lost()).hasKept("a", false, 0).hasKept("b", 1);

        assertThat(cluster.toldSupervisor())
                .containsExactly(new PipelineSupervisor.LinkDied("while the run's seed was gone"));
        cluster.wantsDrivers();
        assertThat(cluster.of(ClusterEffect.StartDriver.class))
                .containsExactly(new ClusterEffect.StartDriver(RUN, address("a"), 1));
    }

    @Test
    void aDriverThatDiedWhileTheSeedWasGoneIsMissed() {
        cluster.introduces(a).introduces(b).keeps(lost());

        cluster.hasKept("a", 0).driverDies("a").hasKept("b", 1);

        assertThat(cluster.toldSupervisor())
                .containsExactly(new PipelineSupervisor.LinkDied("while the run's seed was gone"));
    }

    /** A rank names the driver that it finds when it begins, and no other later. */
    @Test
    void driversThatRanksNamedBetweenTwoRestartsAreKnownToBeReplaced() {
        cluster.introduces(a).introduces(b).keeps(lost()).hasKept("b", 1);

        cluster.hasKept("a", List.of("first", "second"), "third", true, 0);

        assertThat(cluster.toldSupervisor())
                .containsExactly(
                        new PipelineSupervisor.LinkRestarted("first", "third"),
                        new PipelineSupervisor.LinkRestarted("second", "third"));
    }

    @Test
    void driversThatAShareNamesLateAreKnownToBeReplaced() {
        NodeOffer besideA = cluster.joins("c", "c", "host of a", 1);
        var lost = new ImaginedRun(RUN, 2, Map.of(0, a.process(), 1, besideA.process()));
        cluster.introduces(a).keeps(lost).hasKept("a", List.of("second"), "second", true, 0);
        cluster.leaves("c").waits(SETTLING).forget();

        cluster.introduces(besideA).hasKept("c", List.of("first"), "second", false, 1);

        assertThat(cluster.toldSupervisor())
                .containsExactly(new PipelineSupervisor.LinkRestarted("first", "second"));
    }

    /** It has no seat of its own in the share: it went there to its mirror. */
    @Test
    void aRankIsWhereTheJournalSaysThoughItsNodeWasNeverToldToHostIt() {
        cluster.introduces(a)
                .keeps(new ImaginedRun(RUN, 2, Map.of(0, a.process(), 1, a.process())))
                .hasKept("a", 0);

        assertThat(cluster.isSupervised()).isTrue();
        assertThat(cluster.toldSupervisor()).isEmpty();
    }

    // ---- a stop -----------------------------------------------------------------------------

    @Test
    void aStopWhileSharesAreLookedForEndsTheRun() {
        cluster.introduces(a).keeps(lost()).hasKept("a", 0).stops();

        assertThat(cluster.of(ClusterEffect.End.class))
                .extracting(ClusterEffect.End::outcome)
                .containsExactly(new RunOutcome.Interrupted(ImaginedRun.COMPLETED));
        assertThat(cluster.closed()).containsExactly("a");
        cluster.introduces(b).hasKept("b", 1);
        assertThat(cluster.closed()).containsExactly("a", "b");
        assertThat(cluster.waits(Duration.ofMinutes(2)).isSupervised()).isFalse();
    }
}
