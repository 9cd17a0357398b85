package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.spi.RunOutcome;
import java.time.Duration;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** All steps are done: what breaks from then on cannot take them back. */
class EndOfTheRunTest {
    private final CoordinatedRun run = new CoordinatedRun(4, RecoveryPolicy.DEFAULT);

    /** The last of four steps is saved, and its checkpoint has no name yet. */
    private CoordinatedRun untilOnlyThePublishingIsLeft() {
        run.saveEvery(2).open().step().step().saves();
        run.step().step().saves(); // publishing of 2 still under way
        return run.published(2).saves();
    }

    @Test
    void aDeathWhileOnlyThePublishingIsLeftChangesNothing() {
        untilOnlyThePublishingIsLeft().dies(1).published(4).stopped(0, 2, 3);

        expectThatItIsComplete();
    }

    @Test
    void aBrokenLinkWhileOnlyThePublishingIsLeftChangesNothing() {
        untilOnlyThePublishingIsLeft().linkLost(1).published(4).stopped(0, 1, 2, 3);

        expectThatItIsComplete();
    }

    @Test
    void theEndOfTheMediaDriverWhileOnlyThePublishingIsLeftChangesNothing() {
        untilOnlyThePublishingIsLeft();

        run.take(run.coordinator.onLinkDied("", "killed", run.now));
        run.published(4).stopped(0, 1, 2, 3);

        expectThatItIsComplete();
    }

    @Test
    void theEndOfTheMediaDriverCountsInARecoveryThatOpensLinks() {
        run.saveEvery(2).open().step().step().saves(); // publishing of 2 still under way
        run.take(run.coordinator.onInterrupt(run.now));
        run.linkLost(1);

        run.take(run.coordinator.onLinkDied("", "killed", run.now));

        assertThat(run.lastEffects()).contains(new Effect.RestartLink(Set.of("")));
    }

    @Test
    void silenceWhileOnlyThePublishingIsLeftChangesNothing() {
        untilOnlyThePublishingIsLeft().silentBut(0, 1).published(4).stopped(0, 1, 2, 3);

        expectThatItIsComplete();
    }

    @Test
    void aRankThatFailsWhileOnlyThePublishingIsLeftChangesNothing() {
        untilOnlyThePublishingIsLeft();

        run.take(
                run.coordinator.onRankEvent(
                        new RankEvent.Failed(1, 1, "no memory", false), run.now));
        run.published(4).stopped(0, 2, 3);

        expectThatItIsComplete();
    }

    /** Those who were silent may hear of it still, and are waited for no longer than a lease. */
    @Test
    void aParkedRunEndsSoonAfterAnInterruptThoughNobodyHearsOfTheSilentOnes() {
        run.open().step().silentBut(0, 1).prepared(0, 1);
        run.take(run.coordinator.onInterrupt(run.now)).stopped(0, 1);
        assertThat(run.outcome()).isNull();

        run.now += Duration.ofSeconds(4).toNanos();
        run.take(run.coordinator.onTick(run.now));

        assertThat(run.outcome()).isEqualTo(new RunOutcome.Interrupted(1));
    }

    @Test
    void aRunThatEndsWhileItRecoversSaysWhatIsInNoCheckpoint() {
        run.saveEvery(2).open().step().step().saves().published(2).step();
        run.silentBut(0, 1).prepared(0, 1);

        run.take(run.coordinator.onInterrupt(run.now)).stopped(0, 1);

        assertThat(run.unsaved())
                .singleElement()
                .asString()
                .startsWith("step 3: ")
                .contains("after step 2 is in no checkpoint");
    }

    @Test
    void aRunThatEndsWhileItRecoversAndIsSavedSaysNothing() {
        run.saveEvery(2).open().step().step().saves().published(2);
        run.silentBut(0, 1).prepared(0, 1);

        run.take(run.coordinator.onInterrupt(run.now)).stopped(0, 1);

        assertThat(run.unsaved()).isEmpty();
    }

    private void expectThatItIsComplete() {
        assertThat(run.told(RankCommand.Prepare.class)).as("orders of a recovery").isEmpty();
        assertThat(run.outcome()).isEqualTo(new RunOutcome.Completed(4));
    }
}
