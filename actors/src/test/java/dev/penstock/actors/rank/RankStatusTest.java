package dev.penstock.actors.rank;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.collective.RankWaits;
import dev.penstock.actors.collective.WaitingTime;
import dev.penstock.actors.spi.StepKind;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

final class RankStatusTest {
    private final RankStatus status = new RankStatus();

    @Test
    void ordersThatLeadOutOfAnEpochCallOffItsWaitsAndNoOthers() {
        RankWaits now = status.waits(3);
        RankWaits next = status.waits(4);

        status.hear(new RankCommand.Commit(3, 1, 1));
        assertThat(now.isCalledOff()).isFalse();

        status.hear(new RankCommand.Prepare(4));
        assertThat(now.isCalledOff()).isTrue();
        assertThat(next.isCalledOff()).isFalse();

        status.hear(new RankCommand.Stop(3));
        assertThat(next.isCalledOff()).isFalse();

        status.hear(new RankCommand.Stop(4));
        assertThat(next.isCalledOff()).isTrue();
    }

    @Test
    void aWaitInsideAnOpIsSeenAndEndsWithWhatWasBefore() {
        status.set(RankActivity.State.UPDATING, StepKind.TRAIN, 7, 3);
        RankWaits waits = status.waits(1);

        waits.waitsFor("rank 2");
        assertThat(status.now().state()).isEqualTo(RankActivity.State.WAITING_FOR_MEMBERS);
        assertThat(status.now().collective()).isEqualTo("rank 2");
        assertThat(status.now().position()).isEqualTo(3);

        waits.goesOn();
        assertThat(status.now().state()).isEqualTo(RankActivity.State.UPDATING);
        assertThat(status.now().collective()).isNull();
    }

    /** An update of many stages stands still no longer than one of them takes. */
    @Test
    void aPartThatIsDoneIsMovement() {
        var clock = new AtomicLong(100);
        var timed =
                new RankStatus(
                        new WaitingTime() {
                            @Override
                            public long nanos() {
                                return clock.get();
                            }

                            @Override
                            public void pass(int turn) {}
                        });
        timed.set(RankActivity.State.UPDATING, StepKind.TRAIN, 7, 3);
        clock.set(150);

        timed.moved();

        assertThat(timed.now())
                .isEqualTo(
                        new RankStatus.Moment(
                                RankActivity.State.UPDATING, StepKind.TRAIN, 7, 3, null, 150));
    }

    @Test
    void aWaitKnowsWhetherALinkCarriesSomethingByPlan() {
        RankWaits waits = status.waits(1);
        assertThat(waits.isUnderWay()).isFalse();

        status.watch(() -> Optional.of("the link delivers in 3 s"));

        assertThat(waits.isUnderWay()).isTrue();
        assertThat(status.underWay()).contains("the link delivers in 3 s");
    }
}
