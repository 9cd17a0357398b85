package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.journal.JournalledRun;
import dev.penstock.actors.node.HostedRank;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.node.TestNodes;
import dev.penstock.actors.precision.LossScaler;
import dev.penstock.actors.precision.LossScaling;
import dev.penstock.actors.rank.LocationDigests;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.rank.StateSource;
import dev.penstock.actors.spi.RankSteps;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.RunSteps;
import dev.penstock.actors.spi.StepReport;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** What a coordinator does with a run whose supervisor is gone; the ranks are imagined. */
class TakenUpRunTest implements RunListener {
    private static final int RANKS = 3;
    private static final double LOSS = 3.25;
    private static final long TAKEN_UP = TimeUnit.HOURS.toNanos(5);

    private RunPlan plan = plan(new RunSteps(0, 9, 0, 0, 0, 0));
    private final List<Effect> effects = new ArrayList<>();
    private final List<StepReport> steps = new ArrayList<>();
    private RunCoordinator coordinator = takeUp(began(), committed(1), committed(2));
    private long now = TAKEN_UP;

    @Test
    void aCommitThatNobodyHeardOfIsToldAgainAndItsStepReported() {
        allAreFound();
        for (int rank = 0; rank < RANKS; rank++) {
            prepared(rank, 1, 2);
        }
        assertThat(orders(RankCommand.Resume.class))
                .hasSize(RANKS)
                .allSatisfy(order -> assertThat(order.start()).isEqualTo(new StateSource.Kept()));

        allResume();

        assertThat(orders(RankCommand.Commit.class))
                .hasSize(RANKS)
                .containsOnly(new RankCommand.Commit(2, 2, 0.5));
        for (int rank = 0; rank < RANKS; rank++) {
            stepDone(rank, 2);
        }
        assertThat(steps)
                .singleElement()
                .satisfies(
                        report -> {
                            assertThat(report.step()).isEqualTo(2);
                            assertThat(report.loss()).isEqualTo(LOSS);
                            assertThat(report.startNanos())
                                    .as("since it was taken up: the other's clock may be another")
                                    .isEqualTo(TAKEN_UP);
                        });
        assertThat(orders(RankCommand.BeginPass.class))
                .allSatisfy(begin -> assertThat(begin.step()).isEqualTo(3));
    }

    /** Step 2 overflowed, which nobody has heard; the scale was 512 after step 1. */
    @Test
    void anOverflowIsToldAgainAndTheScaleIsThatOfTheJournal() {
        var first = LossScaler.first(new LossScaling(true, 1024, 100, 1));
        plan = plan(new RunSteps(0, 9, 0, 0, 0, 0).scaling(first));
        coordinator =
                takeUp(
                        began(),
                        new JournalRecord.LossScaled(0, first.text()),
                        new JournalRecord.Committed(1, 1, OptionalDouble.empty(), LOSS, Double.NaN),
                        new JournalRecord.Committed(
                                1, 2, OptionalDouble.empty(), LOSS, Double.NaN));
        effects.clear();
        allAreFound();
        for (int rank = 0; rank < RANKS; rank++) {
            prepared(rank, 1, 2);
        }

        allResume();

        assertThat(orders(RankCommand.Commit.class))
                .containsOnly(new RankCommand.Commit(2, 2, OptionalDouble.empty(), 1));
        for (int rank = 0; rank < RANKS; rank++) {
            stepDone(rank, 2);
        }
        assertThat(steps).isEmpty();
        assertThat(orders(RankCommand.BeginPass.class))
                .hasSize(RANKS)
                .allSatisfy(
                        begin -> {
                            assertThat(begin.step()).isEqualTo(3);
                            assertThat(begin.lossScale()).hasValue(256);
                        });
    }

    /**
     * The record of a second return was lost, and the ranks came only so far since: their update of
     * step 2 waits for a commit that nobody will repeat.
     */
    @Test
    void gradientsWithoutACommitToRepeatDoNotCountAsTheStep() {
        coordinator =
                takeUp(began(), committed(1), committed(2), new JournalRecord.RolledBack(1, 2));
        allAreFound();

        for (int rank = 0; rank < RANKS; rank++) {
            prepared(rank, 1, 2);
        }

        assertThat(orders(RankCommand.Resume.class))
                .hasSize(RANKS)
                .allSatisfy(order -> assertThat(order.start()).isEqualTo(new StateSource.Fresh()));
    }

    @Test
    void theNextEpochIsWrittenBeforeAnyRankHearsOfIt() {
        take(coordinator.onTick(now));
        assertThat(effects.getFirst())
                .isInstanceOfSatisfying(
                        Effect.Journal.class,
                        journal ->
                                assertThat(journal.entries().getFirst())
                                        .isInstanceOfSatisfying(
                                                JournalRecord.EpochRaised.class,
                                                raised -> assertThat(raised.epoch()).isEqualTo(2)));
    }

    /** Its disk said too early that it had written; the ranks know better. */
    @Test
    void aJournalThatLostItsEndLeadsToAnEpochThatNobodyHasUsed() {
        found(0);
        take(coordinator.onRankEvent(new RankEvent.Refused(0, 5), now));
        assertThat(coordinator.epoch()).isEqualTo(6);

        take(coordinator.onHigherEpoch(TestNodes.of("n9", 9, 1), 8, now));
        assertThat(coordinator.epoch()).isEqualTo(9);
        assertThat(orders(RankCommand.Prepare.class))
                .extracting(RankCommand.Prepare::epoch)
                .contains(6, 9);
    }

    @Test
    void aRankThatLivesNowhereSendsAllBackWhereThereAreNoMirrors() {
        found(0);
        found(1);
        prepared(0, 2, -1);
        prepared(1, 2, -1);
        assertThat(orders(RankCommand.Resume.class)).isEmpty();

        take(coordinator.onNowhere(2, now));

        assertThat(orders(RankCommand.Resume.class))
                .hasSize(2)
                .allSatisfy(order -> assertThat(order.start()).isEqualTo(new StateSource.Fresh()));
    }

    /** It renews its lease with the supervisor that is gone, whatever this one waits for. */
    @Test
    void aRankThatDidNotHearOfThisSupervisorIsToldAgainBeforeItsLeaseEnds() {
        allAreFound();
        effects.clear();

        now += plan.timeouts().lease().toNanos() / 2;
        prepared(0, 2, -1);
        take(coordinator.onTick(now));

        assertThat(effects)
                .contains(
                        new Effect.TellRank(1, new RankCommand.Prepare(2)),
                        new Effect.TellRank(2, new RankCommand.Prepare(2)))
                .doesNotContain(new Effect.TellRank(0, new RankCommand.Prepare(2)));
    }

    @Test
    void aRankThatIsSilentAtATakeOverIsToldAgain() {
        allAreFound();
        afterALease(0);
        effects.clear();

        afterALease(0);

        assertThat(effects)
                .contains(
                        new Effect.TellRank(1, new RankCommand.Prepare(2)),
                        new Effect.TellRank(2, new RankCommand.Prepare(2)));
    }

    @Test
    void whoIsHeardOfByNobodyIsLeftOutOnlyByAMajority() {
        found(0);
        prepared(0, 2, -1);

        afterALease(0);

        assertThat(orders(RankCommand.Resume.class)).isEmpty();
        found(1);
        prepared(1, 2, -1);
        assertThat(orders(RankCommand.Resume.class)).hasSize(2);
    }

    /** A large cluster needs seconds to list the node of a rank that lives. */
    @Test
    void aRankThatItsNodeNamedHasMoreThanALeaseToIntroduceItself() {
        takeUpNamed();
        found(0);
        found(1);

        for (int lease = 0; lease < 4; lease++) {
            prepared(1, 2, -1);
            afterALease(0);
        }
        assertThat(orders(RankCommand.Resume.class)).isEmpty();
        found(2);
        prepared(1, 2, -1);
        prepared(2, 2, -1);

        assertThat(orders(RankCommand.Resume.class))
                .hasSize(RANKS)
                .allSatisfy(order -> assertThat(order.start()).isEqualTo(new StateSource.Kept()));
    }

    @Test
    void aNamedRankThatNobodyHasInTheEndIsDead() {
        takeUpNamed();
        found(0);
        prepared(0, 2, -1);

        for (int lease = 0; lease < 11; lease++) {
            afterALease(0);
        }

        assertThat(orders(RankCommand.Resume.class)).as("no majority is needed").hasSize(1);
    }

    @Test
    void aRankThatItsOwnNodeDoesNotHaveIsDeadAtOnce() {
        takeUpNamed(new JournalRecord.Placed(2, node(2).process()));
        found(0);
        found(1);
        prepared(0, 2, -1);
        prepared(1, 2, -1);

        take(coordinator.onNode(node(2), now));

        assertThat(orders(RankCommand.Resume.class)).hasSize(2);
    }

    /** Its rank was told to stop, and has. */
    @Test
    void aNodeThatLostItsRankWhileTheRunStopsIsNoReasonToRecover() {
        allAreFound();
        take(coordinator.onRankEvent(new RankEvent.Failed(0, 2, "no device", true), now));
        effects.clear();

        take(coordinator.onNode(node(2), now));

        assertThat(orders(RankCommand.Prepare.class)).isEmpty();
    }

    private void takeUpNamed(JournalRecord... placed) {
        List<JournalRecord> journal = new ArrayList<>(List.of(began()));
        journal.addAll(List.of(placed));
        journal.addAll(List.of(committed(1), committed(2)));
        coordinator =
                TestCoordinators.takeUpNamed(
                        JournalledRun.of(journal).orElseThrow(), plan, RecoveryPolicy.DEFAULT, now);
        effects.clear();
    }

    @Test
    void aSecondRankOfTheSameNumberIsSentAway() {
        found(0);

        take(coordinator.onNode(node(9), 1, List.of(new HostedRank(0, 1)), now));

        assertThat(effects)
                .contains(
                        new Effect.Dismiss(node(9), new HostedRank(0, 1), new RankCommand.Stop(2)));
    }

    @Test
    void recoveriesOfEarlierSupervisorsCount() {
        List<JournalRecord> journal = new ArrayList<>(List.of(began()));
        for (int recovery = 0; recovery < RecoveryPolicy.DEFAULT.maxRestarts(); recovery++) {
            journal.add(new JournalRecord.Counted(0, "death " + recovery));
        }
        coordinator = takeUp(journal.toArray(JournalRecord[]::new));
        allAreFound();
        long soon = RecoveryPolicy.DEFAULT.window().toNanos();
        assertThat(coordinator.onProcessDied(100, Optional.of(0), "killed", soon))
                .filteredOn(Effect.Journal.class::isInstance)
                .last()
                .satisfies(
                        effect ->
                                assertThat(((Effect.Journal) effect).entries().getFirst())
                                        .isInstanceOf(JournalRecord.Failed.class)
                                        .asString()
                                        .contains("death 0; death 1", "max-restarts = 5"));

        coordinator = takeUp(journal.toArray(JournalRecord[]::new));
        effects.clear();
        allAreFound();
        long later = soon + TimeUnit.SECONDS.toNanos(1);
        assertThat(coordinator.onProcessDied(100, Optional.of(0), "killed", later))
                .filteredOn(Effect.Journal.class::isInstance)
                .noneMatch(
                        effect ->
                                ((Effect.Journal) effect).entries().getFirst()
                                        instanceof JournalRecord.Failed);
    }

    @Test
    void aRunThatHasEndedIsNotTakenUp() {
        assertThatThrownBy(() -> takeUp(began(), committed(1), new JournalRecord.Ended(1)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("under way");
    }

    // ---- what happens -----------------------------------------------------------------------

    private RunCoordinator takeUp(JournalRecord... journal) {
        JournalledRun run = JournalledRun.of(List.of(journal)).orElseThrow();
        return TestCoordinators.takeUp(run, plan, RecoveryPolicy.DEFAULT, TAKEN_UP);
    }

    private JournalRecord began() {
        return new JournalRecord.Began(plan.runId(), plan.hash(), RANKS, 1, 0);
    }

    private static JournalRecord committed(long step) {
        return new JournalRecord.Committed(1, step, 0.5, LOSS, 7);
    }

    private static RunPlan plan(RunSteps steps) {
        var pipeline = new ChainPipeline("1f1b", new ChainStage.Settings(RANKS, 2, 1, false, 0.01));
        pipeline.runSteps = steps;
        return pipeline.plan();
    }

    private static NodeInfo node(int rank) {
        return TestNodes.of("n" + rank, 100 + rank, rank);
    }

    private void take(List<Effect> some) {
        effects.addAll(some);
        for (Effect effect : some) {
            if (effect instanceof Effect.Notify(var call)) {
                call.accept(this);
            }
        }
    }

    private void found(int rank) {
        take(coordinator.onNode(node(rank), 1, List.of(new HostedRank(rank, 1)), now));
        assertThat(effects).contains(new Effect.TellRank(rank, new RankCommand.Prepare(2)));
    }

    private void allAreFound() {
        for (int rank = 0; rank < RANKS; rank++) {
            found(rank);
        }
    }

    private void prepared(int rank, long committed, long ready) {
        var state = new RankEvent.HeldState(rank, committed, ready);
        take(
                coordinator.onRankEvent(
                        new RankEvent.Prepared(rank, 2, state, List.of(), LocationDigests.NONE, ""),
                        now));
    }

    private void allResume() {
        for (int rank = 0; rank < RANKS; rank++) {
            take(coordinator.onRankEvent(new RankEvent.Resumed(rank, 2, "device", "f"), now));
        }
    }

    private void stepDone(int rank, long step) {
        int ops = plan.training().program(rank).ops().size();
        var timings = RankSteps.of(rank, new long[ops], new long[ops], 0, 0, 0, 0);
        take(coordinator.onRankEvent(new RankEvent.StepDone(rank, 2, step, timings), now));
    }

    private void afterALease(int alive) {
        long lease = plan.timeouts().lease().toNanos();
        for (int tick = 0; tick < 8; tick++) {
            now += lease / 7;
            prepared(alive, 2, -1);
            take(coordinator.onTick(now));
        }
    }

    private <T extends RankCommand> List<T> orders(Class<T> type) {
        return effects.stream()
                .filter(Effect.TellRank.class::isInstance)
                .map(effect -> ((Effect.TellRank) effect).order())
                .filter(type::isInstance)
                .map(type::cast)
                .toList();
    }

    @Override
    public void onStep(StepReport report) {
        steps.add(report);
    }
}
