package dev.penstock.actors.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * The power of {@link FaultSchedulesTest}: each of these mistakes in the protocol, planted into the
 * real sources or those of a simulated exchange, is found by its seeds, within 40 of them from
 * where it shows.
 */
@ExtendWith(QuietLog.class)
class PlantedMistakesTest {
    private static final long SEEDS = 40;

    /** A mistake: what stands in the source once, and what would be wrong in its place. */
    enum Mistake {
        COMMIT_TOLD_BEFORE_IT_IS_JOURNALLED(
                "supervisor/StepDriver",
                "lastCommit = round.step();",
                "lastCommit = round.step();"
                        + "out.tellAll(new RankCommand.Commit(ranks.epoch(), round.step(), clipFactor));"),
        COMMIT_TOLD_WITH_ANOTHER_CLIP_FACTOR(
                "supervisor/StepDriver",
                "out.tellAll(commit.order(ranks.epoch()));",
                "out.tellAll(new RankCommand.Commit(ranks.epoch(), round.step(), 1.0));"),
        RANK_OBEYS_AN_EPOCH_THAT_IS_OVER(
                400,
                "rank/RankRunner",
                "order.epoch() < epoch || isAnothers(order, from)",
                "order.epoch() < 0"),
        EPOCH_IS_FORGOTTEN_AT_A_TAKE_OVER(
                "journal/JournalledRun",
                "epoch = Math.max(epoch, to);",
                "epoch = began == null ? to : began.epoch();"),
        ANSWERS_OF_AN_EARLIER_EPOCH_COUNT(
                1450,
                "supervisor/RunCoordinator",
                "course.is(Phase.RECOVERING) && event.epoch() == ranks.epoch()",
                "course.is(Phase.RECOVERING)"),
        EXCLUSION_WITHOUT_A_MAJORITY(
                10,
                "supervisor/RecoveryDriver",
                "!silent.isEmpty() && !majority",
                "!silent.isEmpty() && under.prepared().size() == 0"),
        HALF_COUNTS_AS_A_MAJORITY(
                10,
                "supervisor/RecoveryDriver",
                "2 * under.prepared().size() > ranks.present()",
                "2 * under.prepared().size() >= ranks.present()"),
        OLD_MIRROR_STANDS_IN(
                85,
                "supervisor/RecoveryPhase",
                "mirror.rank() == named && mirror.reaches(step)",
                "mirror.rank() == named"),
        RANKS_OF_DIFFERENT_STEPS_GO_ON(
                20,
                "supervisor/RecoveryPhase",
                "allMatch(answer -> answer.state().reaches(step))",
                "allMatch(answer -> step >= 0)"),
        BACK_TO_THE_CHECKPOINT_THOUGH_ALL_IS_THERE(
                "supervisor/RecoveryDecision",
                "!under.attempt().wantsBack() && under.allReach(commit)",
                "!under.attempt().wantsBack() && under.allReach(commit) && commit % 2 == 0"),
        GOING_BACK_IS_NOT_JOURNALLED(
                "supervisor/StepDriver",
                "out.add(new Effect.Journal(new JournalRecord.RolledBack(ranks.epoch(), step)));",
                ""),
        COMMIT_IS_FORGOTTEN_AT_A_TAKE_OVER(140, "journal/JournalledRun", "commit = next;", ""),
        TWO_ANSWERS_OF_ONE_RANK_COUNT(
                "supervisor/CommitRound",
                "done.step() != step || timings[done.rank()] != null",
                "done.step() != step"),
        CHECKPOINT_WITHOUT_A_RANKS_PART(
                "supervisor/StepDriver",
                "Optional<String> failure = round.failure();",
                "Optional<String> failure = Optional.empty();"),
        DAMAGED_CHECKPOINT_IS_GONE_BACK_TO_AGAIN(
                55, "supervisor/StepDriver", "published = step.orElse(JournalledRun.NONE);", ""),
        PASS_ENDS_BEFORE_ITS_SUMS(
                "rank/OpInterpreter", "isAtEnd() && !collectives.areUnderWay()", "isAtEnd()"),
        WAIT_IN_AN_OP_IS_NOT_CALLED_OFF(
                "rank/RankStatus",
                "case RankCommand.Prepare _ -> order.epoch() - 1;",
                "case RankCommand.Prepare _ -> NONE;"),
        WAIT_BETWEEN_OPS_IS_NOT_CALLED_OFF(
                130,
                "rank/RankStatus",
                "return over >= ofEpoch;",
                "return over >= ofEpoch && beforeWait == RankActivity.State.COMPUTING;"),
        EXCHANGE_GOES_ON_IN_ANOTHER_EPOCH(
                570,
                "simulation/SimExchange",
                "replicas = newReplicas;\n        collective = null;",
                "replicas = newReplicas;"),
        MEMBERS_OF_AN_EARLIER_EPOCH_MEET(
                30,
                "collective/shared/CollectiveRegistry",
                "new Key(epoch, role,",
                "new Key(0, role,"),
        GROUP_OF_SEVERAL_PROCESSES_MEETS_IN_MEMORY(
                235,
                "collective/wire/DataPlaneGroup",
                ".distinct().count() > 1",
                ".distinct().count() == members.size()"),
        SUM_IS_COPIED_BEFORE_IT_IS_WHOLE(
                20,
                "collective/shared/SharedMemoryCollective",
                "kind.sums() ? Meeting.SUMMED : Meeting.HERE",
                "Meeting.HERE"),
        RING_BUFFER_IS_USED_AGAIN_BEFORE_IT_HAS_ARRIVED(
                20,
                "collective/wire/DataPlanePass",
                "blocksCame == blocks && next.isVerified(next.sent());",
                "blocksCame == blocks;"),
        SLICES_OF_A_MICRO_BATCH_HAVE_ONE_KEY(
                "rank/BoundaryLinks",
                "unit.microBatch(), unit.slice());",
                "unit.microBatch(), 0);"),
        BACKWARD_OF_THE_INPUT_IS_A_WHOLE_ONE(
                20, "rank/OpInterpreter", "stage.backwardInput(unit,", "stage.backward(unit,"),
        EACH_REPLICA_HAS_A_CLIP_FACTOR(
                "rank/RankWork",
                "stage.update(committedStep, clipFactor);",
                "stage.update(committedStep, rank == 0 ? clipFactor : 1);"),
        RANKS_WITH_PARTS_COUNT_AS_COPIES(
                25, "spi/RunPlan", "return mirrors && wholeReplicas", "return mirrors"),
        MICRO_BATCH_IS_LEFT_OUT_THAT_A_STAGE_LACKS(
                Scenario.WIRED + 120,
                "supervisor/RecoveryPhase",
                "microBatch.getValue() == placement.stages()",
                "microBatch.getValue() > 0"),
        RANK_THAT_IS_BACK_BEGINS_ANEW(
                Scenario.WIRED,
                "supervisor/RestartSource",
                "case Joined(StateSource start) -> start;",
                "case Joined _ -> new StateSource.Fresh();"),
        ABSENT_RANKS_ARE_WAITED_FOR(
                Scenario.WIRED,
                "supervisor/PassRound",
                "this.missing = ranks.present();",
                "this.missing = ranks.size();"),
        LAST_CHANGE_OF_PLACE_IS_NOT_TOLD(
                "supervisor/ToldLocations",
                "digests = LocationDigests.of(now);",
                "digests = locations.isEmpty() ? LocationDigests.of(now) : digests;");

        private final long firstSeed;
        private final String type;
        private final String right;
        private final String wrong;

        Mistake(String type, String right, String wrong) {
            this(0, type, right, wrong);
        }

        /**
         * @param firstSeed so many seeds before it do not show the mistake
         */
        Mistake(long firstSeed, String type, String right, String wrong) {
            this.firstSeed = firstSeed;
            this.type = type;
            this.right = right;
            this.wrong = wrong;
        }
    }

    @ParameterizedTest
    @EnumSource
    void theSeedsFindEachMistake(Mistake mistake) throws Exception {
        var actors = new AlteredClasses(mistake.type, mistake.right, mistake.wrong);

        var found =
                actors.find(
                        SeededRuns.class,
                        "firstFailure",
                        mistake.firstSeed,
                        mistake.firstSeed + SEEDS);

        assertThat(found).as("%s: nothing was violated in %d runs", mistake, SEEDS).isPresent();
    }
}
