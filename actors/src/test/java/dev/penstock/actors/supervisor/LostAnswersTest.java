package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.node.HostedRank;
import dev.penstock.actors.node.TestNodes;
import dev.penstock.actors.rank.RankCommand;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** A connection that broke took an answer with it: it is asked for again. */
class LostAnswersTest {
    private final CoordinatedRun run = new CoordinatedRun(4, RecoveryPolicy.DEFAULT);

    @Test
    void aNodeThatDidNotSayWhereItsOpenRankLivesIsAskedAgain() {
        run.open().step().dies(1).prepared(0, 2, 3);
        run.take(run.coordinator.onNode(TestNodes.of("n9", 9, 1), run.now));
        run.opens(1).resumed(0, 2, 3);
        run.forgetTold();
        assertThat(births(1)).isEqualTo(2);

        run.waits(Duration.ofSeconds(40));

        assertThat(births(1)).isEqualTo(3);
        run.hosted(1);
        assertThat(run.told(RankCommand.BeginPass.class)).hasSize(4);
    }

    @Test
    void aRankOfWhichItIsNotKnownThatItOpenedIsAskedBeforeTheRunIsGivenUp() {
        run.joins(0).joins(1).joins(2).joins(3).opens(0).opens(1).opens(2);
        run.forgetTold();

        run.waits(Duration.ofSeconds(40));

        assertThat(run.told(RankCommand.Resume.class)).hasSize(1);
        assertThat(run.told(RankCommand.BeginPass.class)).isEmpty();
        run.resumed(3);
        assertThat(run.told(RankCommand.BeginPass.class)).hasSize(4);
    }

    @Test
    void aRankThatWasAskedInVainIsAskedAgainUntilItIsTooLate() {
        run.joins(0).joins(1).joins(2).joins(3).opens(0).opens(1).opens(2);
        run.forgetTold();

        run.waits(Duration.ofSeconds(55));

        assertThat(run.told(RankCommand.Resume.class)).hasSize(3);
        run.resumed(3);
        assertThat(run.told(RankCommand.BeginPass.class)).hasSize(4);
    }

    @Test
    void aRankOfWhichItIsNotKnownThatItIsHostedIsHostedAgain() {
        run.joins(0).joins(1).joins(2).opens(0).opens(1).opens(2);
        run.take(run.coordinator.onNode(TestNodes.of("n3", 9, 3), run.now)).opens(3);

        run.waits(Duration.ofSeconds(40));

        assertThat(births(3)).isEqualTo(2);
        run.hosted(3);
        assertThat(run.told(RankCommand.BeginPass.class)).hasSize(4);
    }

    /** One of two is no majority: without a proof the run would be parked for good. */
    @Test
    void aRankWhoseNodeNeverHeardOfItIsHostedAgain() {
        var two = new CoordinatedRun(2, RecoveryPolicy.DEFAULT);
        var node = TestNodes.of("n9", 9, 1);
        two.open().step().dies(1).prepared(0);
        two.take(two.coordinator.onNode(node, 2, List.of(), two.now));
        assertThat(births(two, 1)).isEqualTo(2);

        two.silentBut(0);
        assertThat(two.coordinator.epoch()).isEqualTo(3);
        two.take(two.coordinator.onNode(node, 2, List.of(), two.now));
        assertThat(births(two, 1)).as("it may hear of it still").isEqualTo(2);
        two.take(two.coordinator.onNode(node, 3, List.of(), two.now)).prepared(0);

        assertThat(births(two, 1)).isEqualTo(3);
    }

    /** It renews its lease, so it is not silent, and nobody can tell it anything. */
    @Test
    void aRankOfWhichItIsNotKnownThatItIsHostedIsFoundWhenTheEpochHasRisen() {
        var node = TestNodes.of("n9", 9, 1);
        run.open().step().dies(1).prepared(0, 2, 3);
        run.take(run.coordinator.onNode(node, run.now)).dies(2);
        run.forgetTold();

        assertThat(run.coordinator.isSilent(node)).isTrue();
        run.take(run.coordinator.onNode(node, 3, List.of(new HostedRank(1, 2)), run.now));

        assertThat(run.told(RankCommand.Prepare.class)).hasSize(1);
        assertThat(run.coordinator.isSilent(node)).isFalse();
    }

    private long births(int rank) {
        return births(run, rank);
    }

    private static long births(CoordinatedRun run, int rank) {
        return run.births().stream().filter(birth -> birth.rank() == rank).count();
    }
}
