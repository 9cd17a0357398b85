package dev.penstock.actors.exploration;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.simulation.AlteredClasses;
import dev.penstock.actors.simulation.QuietLog;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * The power of {@link InterleavingsTest}: each of these mistakes, planted into the real
 * coordinator, is found by going through take-overs near a fair order of messages.
 */
@ExtendWith(QuietLog.class)
class PlantedMistakesTest {
    /** A mistake: what stands in the source once, and what would be wrong in its place. */
    enum Mistake {
        COMMIT_TOLD_BEFORE_IT_IS_JOURNALLED(
                "supervisor/StepDriver",
                "lastCommit = round.step();",
                "lastCommit = round.step();"
                        + "out.tellAll(new RankCommand.Commit(ranks.epoch(), round.step(), clipFactor));"),
        EPOCH_IS_USED_AGAIN_AFTER_A_TAKE_OVER(
                "supervisor/RecoveryDriver",
                "int epoch = ranks.epoch() + 1;",
                "int epoch = ranks.epoch() + (attempt.takesUp() ? 0 : 1);"),
        STATE_THAT_IS_AHEAD_OF_A_LOST_RECORD_COUNTS(
                "rank/RankEvent",
                "committedStep == step || readyStep == step",
                "committedStep >= step || readyStep == step"),
        STATES_OF_DIFFERENT_STEPS_COUNT_AS_ONE(
                "supervisor/RecoveryPhase",
                "allMatch(answer -> answer.state().reaches(step))",
                "allMatch(answer -> step >= 0)"),
        BACK_TO_THE_CHECKPOINT_THOUGH_ALL_REACH_THE_COMMIT(
                "supervisor/RecoveryDecision",
                "!under.attempt().wantsBack() && under.allReach(commit)",
                "!under.attempt().wantsBack() && under.allReach(commit) && commit % 2 == 0");

        private final String type;
        private final String right;
        private final String wrong;

        Mistake(String type, String right, String wrong) {
            this.type = type;
            this.right = right;
            this.wrong = wrong;
        }
    }

    @ParameterizedTest
    @EnumSource
    void aTakeOverShowsEachMistake(Mistake mistake) throws Exception {
        var actors = new AlteredClasses(mistake.type, mistake.right, mistake.wrong);

        var found = actors.find(InterleavingsTest.class, "firstViolation");

        assertThat(found).as("%s: nothing was violated", mistake).isPresent();
    }
}
