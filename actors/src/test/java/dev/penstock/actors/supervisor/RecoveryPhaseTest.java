package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.node.TestNodes;
import dev.penstock.actors.rank.LocationDigests;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.rank.RankEvent.HeldState;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.supervisor.RecoveryAttempt.Origin;
import dev.penstock.actors.supervisor.RecoveryAttempt.Reason;
import dev.penstock.actors.supervisor.RecoveryPhase.HoldersRoom;
import dev.penstock.actors.supervisor.RecoveryPhase.Preparing;
import dev.penstock.actors.supervisor.RecoveryPhase.Resuming;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** What leads from one phase of a recovery to the next. */
class RecoveryPhaseTest {
    private static final int EPOCH = 2;
    private static final RunPlan PLAN = TestPlans.chain(5);

    private final RecoveryAttempt attempt =
            RecoveryAttempt.begin(new Origin("rank 1 died", new Reason.Loss(), 10, 7)).died(1);
    private final Preparing preparing = Preparing.begin(attempt, 20);

    // ---- preparing ------------------------------------------------------------------------------

    @Test
    void anEpochBeginsWithoutAnswers() {
        assertThat(preparing.prepared().size()).isZero();
        assertThat(preparing.askedFor().isEmpty()).isTrue();
        assertThat(preparing.room()).isEqualTo(new HoldersRoom.Unasked());
        assertThat(preparing.sinceNanos()).isEqualTo(20);
    }

    @Test
    void anAnswerIsAddedAndThePhaseBeforeStaysAsItWas() {
        Preparing more = preparing.answered(holding(2, 7, -1)).answered(holding(0, 7, -1));

        assertThat(more.prepared().ranks()).containsExactly(0, 2);
        assertThat(more.hasAnswered(2)).isTrue();
        assertThat(more.hasAnswered(1)).isFalse();
        assertThat(preparing.hasAnswered(2)).isFalse();
    }

    @Test
    void anExcludedRankIsDeadAndWhatItHoldsIsOutOfReach() {
        Preparing rest =
                preparing
                        .answered(holding(0, 7, -1))
                        .answered(holding(2, 7, -1, new HeldState(1, 7, -1)))
                        .excluding(2);

        assertThat(rest.attempt().dead().list()).containsExactly(1, 2);
        assertThat(rest.prepared().ranks()).containsExactly(0);
        assertThat(rest.holders(PLAN, List.of(1), 7)).isEmpty();
    }

    @Test
    void aStepIsReachedByWhoeverAppliedItOrHasItsGradients() {
        Preparing both = preparing.answered(holding(0, 7, -1)).answered(holding(2, 6, 7));

        assertThat(both.allReach(7)).isTrue();
        assertThat(both.answered(holding(3, 6, -1)).allReach(7)).isFalse();
    }

    @Test
    void theFirstHolderOfAMirrorThatReachesTheStepIsChosen() {
        Preparing answered =
                preparing
                        .answered(holding(0, 7, -1, new HeldState(1, 6, -1)))
                        .answered(holding(2, 7, -1, new HeldState(1, 6, 7)))
                        .answered(holding(3, 7, -1, new HeldState(1, 7, -1)));

        assertThat(answered.holders(PLAN, List.of(1), 7)).contains(Map.of(1, 2));
        assertThat(answered.holds(PLAN, 0, 1, 7)).isFalse();
        assertThat(answered.holds(PLAN, 4, 1, 7))
                .as("who has not answered holds nothing")
                .isFalse();
    }

    /** It names them all by its own number. */
    @Test
    void aReplicaIsTheMirrorOfAllThatHoldTheSame() {
        RunPlan replicas = TestPlans.replicas(2, 3); // ranks 0, 2 and 4, and 1, 3 and 5
        Preparing answered = preparing.answered(holding(0, 7, -1, new HeldState(0, 7, -1)));

        assertThat(answered.holders(replicas, List.of(2, 4), 7)).contains(Map.of(2, 0, 4, 0));
        assertThat(answered.holders(replicas, List.of(3), 7)).isEmpty();
        assertThat(answered.holders(replicas, List.of(2), 8)).isEmpty();
        assertThat(answered.holders(PLAN, List.of(2), 7)).as("of no replicas").isEmpty();
    }

    @Test
    void aThousandAnswersAreKeptByRisingRank() {
        Preparing all = preparing;
        for (int rank = 999; rank >= 0; rank--) {
            all = all.answered(holding(rank, 7, -1));
        }

        assertThat(all.prepared().ranks()).hasSize(1_000).isSorted();
        assertThat(all.excluding(500).prepared().size()).isEqualTo(999);
        assertThat(all.hasAnswered(500)).isTrue();
    }

    @Test
    void holdersAreThereForAllMissingRanksOrForNone() {
        Preparing answered = preparing.answered(holding(2, 7, -1, new HeldState(1, 7, -1)));

        assertThat(answered.holders(PLAN, List.of(1, 3), 7)).isEmpty();
        assertThat(answered.holders(PLAN, List.of(), 7)).contains(Map.of());
    }

    @Test
    void aProcessIsRememberedAsAskedForUntilTheNextEpoch() {
        Preparing asked = preparing.asksProcessFor(1);

        assertThat(asked.askedFor().contains(1)).isTrue();
        assertThat(Preparing.begin(asked.attempt(), 30).askedFor().isEmpty()).isTrue();
    }

    @Test
    void whoWaitsAnewKeepsItsAnswers() {
        Preparing later = preparing.answered(holding(0, 7, -1)).asksProcessFor(1).since(99);

        assertThat(later.sinceNanos()).isEqualTo(99);
        assertThat(later.hasAnswered(0)).isTrue();
        assertThat(later.askedFor().contains(1)).isTrue();
    }

    // ---- room -----------------------------------------------------------------------------------

    @Test
    void anAnswerAboutRoomThatNobodyAskedForIsIgnored() {
        assertThat(preparing.onRoom(Map.of(1, node(2)), true)).isEqualTo(preparing);
    }

    @Test
    void anAnswerAboutRoomElsewhereIsIgnored() {
        Preparing asking = preparing.with(new HoldersRoom.Asked(Map.of(1, node(2))));

        assertThat(asking.onRoom(Map.of(1, node(3)), true)).isEqualTo(asking);
        assertThat(asking.room().isAbout(Map.of(1, node(3)))).isFalse();
    }

    @Test
    void aRoomThatWasAnsweredStaysKnownInItsEpoch() {
        Map<Integer, NodeInfo> nodes = Map.of(1, node(2));
        Preparing answered = preparing.with(new HoldersRoom.Asked(nodes)).onRoom(nodes, false);

        assertThat(answered.room()).isEqualTo(new HoldersRoom.Answered(nodes, false));
        assertThat(answered.answered(holding(0, 7, -1)).room().isAbout(nodes)).isTrue();
        assertThat(Preparing.begin(answered.attempt(), 30).room())
                .isEqualTo(new HoldersRoom.Unasked());
    }

    // ---- resuming -------------------------------------------------------------------------------

    @Test
    void answersCountAnewWhenRanksResume() {
        Resuming resuming = resuming(preparing.answered(holding(0, 7, -1)));

        assertThat(resuming.hasAnswered(0)).isFalse();
        assertThat(resuming.cameBack(0).hasAnswered(0)).isTrue();
        assertThat(resuming.cameBack(0).cameBack(0).back().size()).isEqualTo(1);
        assertThat(resuming.sinceNanos()).isEqualTo(50);
    }

    @Test
    void whoResumesAndWaitsAnewKeepsWhoIsBack() {
        Resuming later = resuming(preparing).cameBack(2).since(60).with(attempt.tookSpares(1));

        assertThat(later.sinceNanos()).isEqualTo(60);
        assertThat(later.hasAnswered(2)).isTrue();
        assertThat(later.attempt().sparesUsed()).isEqualTo(1);
    }

    @Test
    void theNextEpochForgetsWhoIsBackAndKnowsWhoDied() {
        Resuming resuming = resuming(preparing).cameBack(0);

        Preparing next = Preparing.begin(resuming.attempt().died(3), 70);

        assertThat(next.hasAnswered(0)).isFalse();
        assertThat(next.attempt().dead().list()).containsExactly(1, 3);
    }

    private Resuming resuming(Preparing before) {
        return before.resume(attempt, new RestartSource.Memory(), List.of(), 50);
    }

    private static RankEvent.Prepared holding(
            int rank, long committed, long ready, HeldState... mirrors) {
        var state = new HeldState(rank, committed, ready);
        return new RankEvent.Prepared(
                rank, EPOCH, state, List.of(mirrors), LocationDigests.NONE, "");
    }

    private static NodeInfo node(int rank) {
        return TestNodes.of("node " + rank, 100 + rank, rank);
    }
}
