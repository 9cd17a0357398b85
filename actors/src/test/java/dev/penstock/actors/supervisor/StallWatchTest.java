package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.rank.RankActivity;
import dev.penstock.actors.rank.RankActivity.State;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StepKind;
import java.time.Duration;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;

class StallWatchTest {
    private static final int RANKS = 1000;

    /** The report travels to those who follow the run, in one message. */
    @Test
    void ofManyRanksTheOnesAreToldThatHaveStoodStillLongest() {
        RunPlan plan = TestPlans.chain(RANKS);
        var ranks = new RankTable(TestPlans.chain(RANKS));
        for (int rank = 0; rank < RANKS; rank++) {
            long since = Duration.ofSeconds(rank == 700 ? 3000 : 1000 + rank).toNanos();
            String text = "waits for a frame of rank " + (rank + 1) % RANKS;
            var activity =
                    new RankActivity(
                            State.WAITING_FOR_FRAME, StepKind.TRAIN, 1, rank % 4, since, text);
            ranks.activity(rank, activity, 1);
        }
        var watch = new StallWatch(plan);
        long later = Duration.ofHours(1).toNanos();

        String report = watch.report(ranks.rows(), OptionalLong.of(1), later).orElseThrow();

        assertThat(report)
                .contains("these 32 of 1000 ranks", "rank 700:", "rank 999:", "rank 969:")
                .doesNotContain("rank 968:", "rank 0:")
                .hasSizeLessThan(100_000);
    }

    /** A disk may be slow, so it is never given up; but nobody is to wait for it unknowingly. */
    @Test
    void aRankThatSavesForLongerThanTheStallLimitIsReported() {
        RunPlan plan = TestPlans.chain(2);
        var ranks = new RankTable(plan);
        ranks.activity(0, new RankActivity(State.SAVING, StepKind.TRAIN, 1, 0, 0, "writes"), 1);
        ranks.activity(1, new RankActivity(State.IDLE, StepKind.TRAIN, 1, 0, 0, "idle"), 1);
        var watch = new StallWatch(plan);
        long limit = plan.timeouts().stallLimit().toNanos();
        OptionalLong since = OptionalLong.of(1);

        assertThat(watch.report(ranks.rows(), since, limit)).isEmpty();
        assertThat(watch.report(ranks.rows(), since, limit + 1).orElseThrow())
                .contains("rank 0: writes, for 60.0 s");
        assertThat(watch.hopeless(ranks.rows(), since, 10 * limit)).isEmpty();
    }
}
