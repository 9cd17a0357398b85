package dev.penstock.actors.journal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.journal.JournalRecord.Began;
import dev.penstock.actors.journal.JournalRecord.Committed;
import dev.penstock.actors.journal.JournalRecord.Counted;
import dev.penstock.actors.journal.JournalRecord.Ended;
import dev.penstock.actors.journal.JournalRecord.EpochRaised;
import dev.penstock.actors.journal.JournalRecord.LossScaled;
import dev.penstock.actors.journal.JournalRecord.Placed;
import dev.penstock.actors.journal.JournalRecord.Published;
import dev.penstock.actors.journal.JournalRecord.Revised;
import dev.penstock.actors.journal.JournalRecord.RolledBack;
import dev.penstock.actors.journal.JournalRecord.Skipped;
import dev.penstock.actors.precision.LossScaler;
import dev.penstock.actors.precision.LossScaling;
import dev.penstock.actors.spi.PlanRevision;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import org.junit.jupiter.api.Test;

class JournalledRunTest {
    private static final Began BEGAN = new Began("run", "hash", 4, 1, 0);

    @Test
    void nothingIsKnownOfARunThatNeverBegan() {
        assertThat(JournalledRun.of(List.of())).isEmpty();
        assertThat(JournalledRun.of(List.of(new Published(3)))).isEmpty();
    }

    @Test
    void theLastCommitMayHaveToBeToldAgain() {
        JournalledRun run = read(BEGAN, commit(1, 1), commit(1, 2), new Published(1));

        assertThat(run.completed()).isEqualTo(2);
        assertThat(run.commit()).contains(commit(1, 2));
        assertThat(run.published()).isEqualTo(1);
        assertThat(run.epoch()).isEqualTo(1);
        assertThat(run.ending()).isEmpty();
    }

    @Test
    void whatWasTakenBackIsNoCommit() {
        JournalledRun run =
                read(
                        BEGAN,
                        commit(1, 1),
                        new Published(1),
                        commit(1, 2),
                        new EpochRaised(2, "a death"),
                        new RolledBack(2, 1));

        assertThat(run.commit()).isEmpty();
        assertThat(run.completed()).isEqualTo(1);
        assertThat(run.applied()).isEqualTo(1);
        assertThat(run.epoch()).isEqualTo(2);
    }

    @Test
    void aStepThatWasLeftOutIsDoneButNotApplied() {
        JournalledRun run = read(BEGAN, commit(1, 1), new Skipped(2, 2));

        assertThat(run.completed()).isEqualTo(2);
        assertThat(run.applied()).isEqualTo(1);
        assertThat(run.epoch()).isEqualTo(2);
    }

    @Test
    void onlyTheLastStartCountsButNoEpochIsEverUsedAgain() {
        JournalledRun run =
                read(
                        BEGAN,
                        commit(1, 1),
                        new Published(1),
                        new EpochRaised(7, "a death"),
                        new Ended(1),
                        new Began("run", "hash", 4, 2, 1));

        assertThat(run.epoch()).isEqualTo(7);
        assertThat(run.completed()).isEqualTo(1);
        assertThat(run.published()).isEqualTo(JournalledRun.NONE);
        assertThat(run.ending()).isEmpty();
        assertThat(run.withPublished(1).published()).isEqualTo(1);
    }

    @Test
    void aRankIsWhereItWasPlacedLastSinceTheRunBegan() {
        JournalledRun run =
                read(
                        new Began("run", "hash", 4, 1, 0),
                        new Placed(3, "an earlier start/1/1"),
                        BEGAN,
                        new Placed(0, "a/7/99"),
                        new Placed(1, "a/7/99"),
                        new Placed(1, "b/7/98"));

        assertThat(run.placed()).isEqualTo(Map.of(0, "a/7/99", 1, "b/7/98"));
    }

    /** A step that overflowed is a commit of which nothing is applied. */
    @Test
    void theLossScaleFollowsFromTheFirstOneAndTheStepsThatOverflowed() {
        LossScaler first = LossScaler.first(new LossScaling(true, 1024, 100, 1));
        JournalledRun run =
                read(
                        BEGAN,
                        new LossScaled(0, first.after(true).text()),
                        commit(1, 1),
                        skipped(1, 2),
                        commit(1, 3),
                        skipped(1, 4),
                        new RolledBack(2, 3),
                        new Skipped(2, 4),
                        new Skipped(2, 5));

        assertThat(run.leftOut()).containsExactly(2L, 4L, 5L);
        LossScaler now =
                first.after(true).after(false).after(true).after(false).after(true).after(true);
        assertThat(run.scales(Optional.of(first)).now()).contains(now);
        assertThat(JournalledRun.of(run.records())).contains(run);
    }

    private static Committed skipped(int epoch, long step) {
        return new Committed(epoch, step, OptionalDouble.empty(), 3, Double.NaN);
    }

    private static Committed commit(int epoch, long step) {
        return new Committed(epoch, step, 1, 3, 2);
    }

    @Test
    void aRunFollowsItsLastPlanUntilItIsBegunAnew() {
        var first =
                new PlanRevision(1, List.of("pipeline.partition=[3, 1]"), "aa", "rank 1 is slow");
        var second = new PlanRevision(2, List.of("pipeline.partition=[2, 2]"), "bb", "it is not");

        JournalledRun run =
                read(BEGAN, new Revised(first), commit(2, 1), new Revised(second), commit(3, 2));

        assertThat(run.revision()).isEqualTo(second);
        assertThat(JournalledRun.of(run.records())).contains(run);
        assertThat(read(BEGAN, new Revised(first), new Ended(1), BEGAN).revision())
                .isEqualTo(PlanRevision.NONE);
    }

    private static JournalledRun read(JournalRecord... records) {
        return JournalledRun.of(List.of(records)).orElseThrow();
    }

    /** Every order of up to five records behind the first. */
    @Test
    void theLeastThatHasToBeWrittenSaysTheSame() {
        List<JournalRecord> kinds =
                List.of(
                        commit(1, 1),
                        commit(2, 5),
                        new EpochRaised(3, "a death"),
                        new Counted(7, "a death"),
                        new Placed(1, "a/7/99"),
                        new Published(2),
                        new RolledBack(3, 2),
                        new Skipped(2, 6),
                        new Ended(6));
        List<List<JournalRecord>> orders = List.of(List.of());
        for (int length = 0; length <= 5; length++) {
            for (List<JournalRecord> order : orders) {
                JournalledRun run = readAll(order);
                assertThat(JournalledRun.of(run.records())).as("%s", order).contains(run);
            }
            orders =
                    orders.stream()
                            .flatMap(order -> kinds.stream().map(kind -> with(order, kind)))
                            .toList();
        }
    }

    private static JournalledRun readAll(List<JournalRecord> behindTheFirst) {
        List<JournalRecord> all = new ArrayList<>(List.of(BEGAN));
        all.addAll(behindTheFirst);
        return JournalledRun.of(all).orElseThrow();
    }

    private static List<JournalRecord> with(List<JournalRecord> order, JournalRecord kind) {
        List<JournalRecord> longer = new ArrayList<>(order);
        longer.add(kind);
        return longer;
    }
}
