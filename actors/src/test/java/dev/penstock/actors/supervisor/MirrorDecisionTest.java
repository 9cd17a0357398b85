package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.mirror.MirrorLayout;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.node.TestNodes;
import dev.penstock.actors.rank.LocationDigests;
import dev.penstock.actors.rank.RankAssignment;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.rank.RankEvent.HeldState;
import dev.penstock.actors.rank.RankLocation;
import dev.penstock.actors.rank.RankLocations;
import dev.penstock.actors.rank.StateSource;
import dev.penstock.actors.spi.CheckpointStore.ShardFile;
import dev.penstock.actors.spi.RankSteps;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StepResult;
import dev.penstock.actors.spi.TensorNorm;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What the coordinator does when processes of ranks with mirrors die; the ranks are imagined. */
class MirrorDecisionTest {
    private static final int RANKS = 4;

    private final RunPlan plan = plan();
    private final RunCoordinator coordinator =
            TestCoordinators.begin(plan, RecoveryPolicy.DEFAULT, 0);
    private final List<Effect> effects = new ArrayList<>();
    private long now;
    private boolean holdersHaveRoom = true;

    @BeforeEach
    void openAllAndBeginTheFirstStep() {
        for (int rank = 0; rank < RANKS; rank++) {
            take(coordinator.onNode(node(rank), now));
        }
        for (int rank = 0; rank < RANKS; rank++) {
            open(rank, 1);
        }
    }

    @Test
    void everyRankIsBornWithTheRing() {
        assertThat(births())
                .hasSize(RANKS)
                .allSatisfy(
                        birth -> assertThat(mirrors(birth)).isEqualTo(MirrorLayout.ring(RANKS)));
    }

    @Test
    void aDeadRankGoesOnInTheProcessOfItsMirror() {
        passDone(1);
        stepDone(1);

        kill(1);
        prepared(2, Map.of(0, state(0, 1, -1), 2, state(2, 1, -1), 3, state(3, 1, -1)));

        RankAssignment birth = births().getLast();
        assertThat(birth.rank()).isEqualTo(1);
        assertThat(birth.start()).isEqualTo(new StateSource.FromMirror(2, 1));
        assertThat(hosts().getLast()).isEqualTo(node(2));
        // 1 and 2 share a process: 3 mirrors both; 0's mirror died with 1 and is made anew there
        assertThat(mirrors(birth).holders()).containsExactly(1, 3, 3, 0);
        assertThat(mirrors(birth).fills()).containsExactly(0, 1);
        assertThat(resumes())
                .hasSize(3)
                .allSatisfy(
                        resume -> {
                            assertThat(resume.start()).isEqualTo(new StateSource.Kept());
                            assertThat(mirrors(resume)).isEqualTo(mirrors(birth));
                        });
    }

    @Test
    void nothingCommittedIsDoneAgain() {
        passDone(1);
        stepDone(1);
        kill(1);
        prepared(2, Map.of(0, state(0, 1, -1), 2, state(2, 1, -1), 3, state(3, 1, -1)));
        for (int rank : List.of(0, 2, 3)) {
            take(coordinator.onRankEvent(new RankEvent.Resumed(rank, 2, "device", "f"), ++now));
        }

        open(1, 2);

        assertThat(lastOrder())
                .isInstanceOfSatisfying(
                        RankCommand.BeginPass.class,
                        begin -> assertThat(begin.step()).isEqualTo(2));
    }

    /** The process exists for rank 2, and rank 1 has only found shelter there. */
    @Test
    void whereARankIsToLeaveWhoseProcessShelteredAnotherThatOneLeaves() {
        passDone(1);
        stepDone(1);
        kill(1);
        prepared(2, Map.of(0, state(0, 1, -1), 2, state(2, 1, -1), 3, state(3, 1, -1)));
        for (int rank : List.of(0, 2, 3)) {
            take(coordinator.onRankEvent(new RankEvent.Resumed(rank, 2, "device", "f"), ++now));
        }
        open(1, 2);

        take(coordinator.onMove(Set.of(2), ++now));
        passDone(2);
        stepDone(2);
        save(2);
        effects.clear();
        take(coordinator.onPublished(new Publication(2, 1, 1, Optional.empty()), ++now));

        assertThat(effects)
                .filteredOn(Effect.TellRank.class::isInstance)
                .extracting(effect -> (Effect.TellRank) effect)
                .filteredOn(told -> told.order() instanceof RankCommand.Stop)
                .extracting(Effect.TellRank::rank)
                .containsExactly(1);
        assertThat(effects).noneMatch(Effect.Leave.class::isInstance);
    }

    @Test
    void aCommitThatTheDeadRankNeverAppliedIsToldAgainToAll() {
        passDone(1);
        // nobody has answered the commit; the mirror of 1 has the gradients of step 1
        kill(1);
        prepared(2, Map.of(0, state(0, 1, -1), 2, state(2, 0, 1), 3, state(3, 0, 1)));

        assertThat(births().getLast().start()).isEqualTo(new StateSource.FromMirror(2, 1));
        for (int rank : List.of(0, 2, 3)) {
            take(coordinator.onRankEvent(new RankEvent.Resumed(rank, 2, "device", "f"), ++now));
        }
        effects.clear();
        open(1, 2);

        assertThat(orders())
                .hasSize(RANKS)
                .allSatisfy(
                        order ->
                                assertThat(order)
                                        .isInstanceOfSatisfying(
                                                RankCommand.Commit.class,
                                                commit -> assertThat(commit.step()).isEqualTo(1)));
    }

    @Test
    void twoNeighboursThatDieTogetherSendAllBackToTheBeginning() {
        passDone(1);
        stepDone(1);

        kill(1);
        kill(2);
        prepared(3, Map.of(0, state(0, 1, -1), 3, state(3, 1, -1)));

        assertThat(resumes())
                .hasSize(2)
                .allSatisfy(
                        resume -> {
                            assertThat(resume.start()).isEqualTo(new StateSource.Fresh());
                            assertThat(resume.links().fills()).isEmpty();
                        });
    }

    @Test
    void twoRanksThatAreNoNeighboursComeBackBoth() {
        passDone(1);
        stepDone(1);

        kill(1);
        kill(3);
        prepared(3, Map.of(0, state(0, 1, -1), 2, state(2, 1, -1)));

        List<RankAssignment> last = births().subList(RANKS, births().size());
        assertThat(last)
                .extracting(RankAssignment::start)
                .containsExactly(
                        new StateSource.FromMirror(2, 1), new StateSource.FromMirror(0, 1));
        assertThat(mirrors(last.getFirst()).holders()).containsExactly(1, 3, 3, 1);
        assertThat(mirrors(last.getFirst()).fills()).containsExactly(0, 1, 2, 3);
    }

    @Test
    void noRankGoesToAHolderThatHasNoRoom() {
        passDone(1);
        stepDone(1);
        holdersHaveRoom = false;

        kill(1);
        assertThat(effects).doesNotContain(new Effect.StartProcess(Optional.of(1)));
        prepared(2, Map.of(0, state(0, 1, -1), 2, state(2, 1, -1), 3, state(3, 1, -1)));

        assertThat(effects)
                .containsOnlyOnce(
                        new Effect.AskRoom(Map.of(1, node(2))),
                        new Effect.StartProcess(Optional.of(1)));
        assertThat(hosts()).as("the first placement alone").hasSize(RANKS);
        assertThat(resumes())
                .hasSize(3)
                .allSatisfy(
                        resume -> assertThat(resume.start()).isEqualTo(new StateSource.Fresh()));
    }

    @Test
    void nobodyResumesBeforeTheHoldersRoomIsKnown() {
        passDone(1);
        stepDone(1);
        kill(1);
        var answers = Map.of(0, state(0, 1, -1), 2, state(2, 1, -1), 3, state(3, 1, -1));
        new TreeMap<>(answers)
                .forEach(
                        (rank, state) ->
                                says(
                                        new RankEvent.Prepared(
                                                rank,
                                                2,
                                                state,
                                                List.of(state((rank + 3) % RANKS, 1, -1)),
                                                LocationDigests.NONE,
                                                "")));

        assertThat(resumes()).isEmpty();
        take(coordinator.onRoom(Map.of(1, node(3)), true, ++now));
        assertThat(resumes()).as("another question's answer").isEmpty();
        take(coordinator.onRoom(Map.of(1, node(2)), true, ++now));
        assertThat(resumes()).hasSize(3);
    }

    @Test
    void aDeathWhileRoomIsAskedForMakesTheAnswerWorthless() {
        passDone(1);
        stepDone(1);
        kill(1);
        var ofOne = List.of(state(1, 1, -1));
        says(new RankEvent.Prepared(0, 2, state(0, 1, -1), List.of(), LocationDigests.NONE, ""));
        says(new RankEvent.Prepared(2, 2, state(2, 1, -1), ofOne, LocationDigests.NONE, ""));
        says(new RankEvent.Prepared(3, 2, state(3, 1, -1), ofOne, LocationDigests.NONE, ""));
        assertThat(effects).contains(new Effect.AskRoom(Map.of(1, node(2))));

        kill(2);
        says(
                new RankEvent.Prepared(
                        0, 3, state(0, 1, -1), List.of(state(2, 1, -1)), LocationDigests.NONE, ""));
        take(coordinator.onRoom(Map.of(1, node(2)), true, ++now));
        says(new RankEvent.Prepared(3, 3, state(3, 1, -1), ofOne, LocationDigests.NONE, ""));

        var both = Map.of(1, node(3), 2, node(0));
        assertThat(effects).containsOnlyOnce(new Effect.AskRoom(both));
        assertThat(resumes()).isEmpty();
        take(coordinator.onRoom(both, true, ++now));
        assertThat(resumes()).hasSize(2);
        assertThat(births().subList(RANKS, births().size()))
                .extracting(RankAssignment::start)
                .containsExactly(
                        new StateSource.FromMirror(3, 1), new StateSource.FromMirror(0, 1));
    }

    @Test
    void aMirrorOutOfStepIsNoBeginning() {
        passDone(1);
        stepDone(1);

        kill(1);
        // the holder's mirror was never filled
        prepared(
                2,
                Map.of(0, state(0, 1, -1), 2, state(2, 1, -1), 3, state(3, 1, -1)),
                Map.of(0, List.of(state(3, 1, -1)), 2, List.of(state(1, -1, -1)), 3, List.of()));

        assertThat(resumes())
                .allSatisfy(
                        resume -> assertThat(resume.start()).isEqualTo(new StateSource.Fresh()));
    }

    // ---- imagined ranks -------------------------------------------------------------------------

    private void open(int rank, int epoch) {
        take(coordinator.onHosted(rank, epoch, ++now));
        take(coordinator.onRankEvent(new RankEvent.Opened(rank, epoch, "device", "f"), ++now));
    }

    private void passDone(int epoch) {
        RankCommand.BeginPass begin = (RankCommand.BeginPass) lastOrder();
        for (int rank = 0; rank < RANKS; rank++) {
            var result =
                    new StepResult(
                            rank == RANKS - 1 ? OptionalDouble.of(2) : OptionalDouble.empty(),
                            List.of(new TensorNorm("w" + rank, 1)));
            take(
                    coordinator.onRankEvent(
                            new RankEvent.PassDone(rank, epoch, begin.pass(), result), ++now));
        }
    }

    private void stepDone(int epoch) {
        RankCommand.Commit commit = (RankCommand.Commit) lastOrder();
        for (int rank = 0; rank < RANKS; rank++) {
            long[] none = new long[plan.training().program(rank).ops().size()];
            take(
                    coordinator.onRankEvent(
                            new RankEvent.StepDone(
                                    rank,
                                    epoch,
                                    commit.step(),
                                    RankSteps.of(rank, none, none, 0, 0, 0, 0)),
                            ++now));
        }
    }

    private void save(int epoch) {
        RankCommand.Save save = (RankCommand.Save) lastOrder();
        for (int rank = 0; rank < RANKS; rank++) {
            take(
                    coordinator.onRankEvent(
                            new RankEvent.Saved(
                                    rank,
                                    epoch,
                                    save.step(),
                                    List.of(new ShardFile(rank, "stage-" + rank, 1, "00"))),
                            ++now));
        }
    }

    /** For a test that answers questions itself. */
    private void says(RankEvent event) {
        effects.addAll(coordinator.onRankEvent(event, ++now));
    }

    private void kill(int rank) {
        take(coordinator.onProcessDied(100 + rank, Optional.of(rank), "killed", ++now));
    }

    /** Every rank holds the mirror of the one before, as far as itself. */
    private void prepared(int epoch, Map<Integer, HeldState> states) {
        Map<Integer, List<HeldState>> mirrors = new TreeMap<>();
        states.forEach(
                (rank, state) -> {
                    int mirrored = (rank + RANKS - 1) % RANKS;
                    mirrors.put(
                            rank,
                            List.of(state(mirrored, state.committedStep(), state.readyStep())));
                });
        prepared(epoch, states, mirrors);
    }

    private void prepared(
            int epoch, Map<Integer, HeldState> states, Map<Integer, List<HeldState>> mirrors) {
        new TreeMap<>(states)
                .forEach(
                        (rank, state) ->
                                take(
                                        coordinator.onRankEvent(
                                                new RankEvent.Prepared(
                                                        rank,
                                                        epoch,
                                                        state,
                                                        mirrors.getOrDefault(rank, List.of()),
                                                        LocationDigests.NONE,
                                                        ""),
                                                ++now)));
    }

    private static HeldState state(int rank, long committed, long ready) {
        return new HeldState(rank, committed, ready);
    }

    private static NodeInfo node(int rank) {
        return TestNodes.of("node " + rank, 100 + rank, rank);
    }

    private void take(List<Effect> more) {
        effects.addAll(more);
        for (Effect effect : more) {
            if (effect instanceof Effect.AskRoom(Map<Integer, NodeInfo> ranks)) {
                take(coordinator.onRoom(ranks, holdersHaveRoom, ++now));
            }
        }
    }

    private List<RankCommand> orders() {
        return effects.stream()
                .filter(Effect.TellRank.class::isInstance)
                .map(effect -> ((Effect.TellRank) effect).order())
                .toList();
    }

    private RankCommand lastOrder() {
        return orders().getLast();
    }

    private List<RankCommand.Resume> resumes() {
        return orders().stream()
                .filter(RankCommand.Resume.class::isInstance)
                .map(RankCommand.Resume.class::cast)
                .toList();
    }

    private static MirrorLayout mirrors(RankAssignment birth) {
        return RankLocations.NONE.with(birth.links().changed()).mirrors(birth.links().fills());
    }

    /** As a rank has them that was born with the ring. */
    private static MirrorLayout mirrors(RankCommand.Resume resume) {
        List<RankLocation> first =
                IntStream.range(0, RANKS)
                        .mapToObj(
                                rank ->
                                        new RankLocation(
                                                rank, rank, (rank + 1) % RANKS, Optional.empty()))
                        .toList();
        return new RankLocations(first)
                .with(resume.links().changed())
                .mirrors(resume.links().fills());
    }

    private List<RankAssignment> births() {
        return effects.stream()
                .filter(Effect.HostRank.class::isInstance)
                .map(effect -> ((Effect.HostRank) effect).birth())
                .toList();
    }

    private List<NodeInfo> hosts() {
        return effects.stream()
                .filter(Effect.HostRank.class::isInstance)
                .map(effect -> ((Effect.HostRank) effect).node())
                .toList();
    }

    private static RunPlan plan() {
        var settings = new ChainStage.Settings(RANKS, 2, 1, false, 0.01);
        var pipeline = new ChainPipeline("1f1b", settings);
        pipeline.mirrors = true;
        return pipeline.plan();
    }
}
