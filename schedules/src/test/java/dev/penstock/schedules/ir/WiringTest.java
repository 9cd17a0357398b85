package dev.penstock.schedules.ir;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

class WiringTest {
    /** Ranks 0 and 1 are peer 0, ranks 2 and 3 peer 1; rank 3 is absent. */
    private static final Wiring WIRING =
            new Wiring(2, 2, List.of(List.of(0, 0), List.of(1, 0)), List.of(3));

    private static final PipelineShape SHAPE = PipelineShape.of(2, 2).withPeers(2);

    private static WorkUnit unit(int stage, int microBatch) {
        return new WorkUnit(stage, microBatch, 0);
    }

    private static List<RankProgram> idle(int ranks) {
        return RankProgram.ofRanks(Collections.nCopies(ranks, List.of()));
    }

    @Test
    void aShapeWithPeersHasAPipelineForEachAndTheSameStages() {
        assertThat(SHAPE.ranks()).isEqualTo(4);
        assertThat(SHAPE.pipelineRanks()).isEqualTo(2);
        assertThat(SHAPE.stages()).isEqualTo(2);
        assertThat(SHAPE.units()).isEqualTo(4);
        assertThat(SHAPE.withPeers(1)).isEqualTo(PipelineShape.of(2, 2));
        assertThatThrownBy(() -> new PipelineShape(3, 1, 2, List.of(1), 2))
                .hasMessageContaining("got 3 ranks of 2 peers");
    }

    @Test
    void theWiringDecidesWhichRankDoesAUnit() {
        Placement placement = Placement.loop(2, 1).wired(WIRING);

        assertThat(placement.rankOf(unit(0, 0))).isEqualTo(0);
        assertThat(placement.rankOf(unit(1, 0))).isEqualTo(1);
        assertThat(placement.rankOf(unit(0, 1))).isEqualTo(2);
        assertThat(placement.rankOf(unit(1, 1))).isEqualTo(1);
        assertThat(placement.ranksOf(0)).containsExactly(0, 2);
        assertThat(placement.ranksOf(1)).containsExactly(1);
        assertThat(placement.holds(2, 0)).isTrue();
        assertThat(placement.holds(3, 1)).isFalse();
        assertThat(placement.stagesOf(2)).containsExactly(0);
    }

    @Test
    void stagesOnOneRankOfThePipelineAreApartWhereTheirPeersDiffer() {
        // V placement: rank 0 has stages 0 and 3, rank 1 has 1 and 2
        var wiring = new Wiring(2, 2, List.of(List.of(0, 0, 0, 0), List.of(0, 1, 0, 0)));
        Placement placement = Placement.v(2).wired(wiring);

        assertThat(placement.crossesAfter(unit(1, 0))).isFalse();
        assertThat(placement.crossesAfter(unit(1, 1))).isTrue();
        assertThat(placement.crossesBefore(unit(2, 1))).isTrue();
        assertThat(placement.crossesBefore(unit(0, 1))).isFalse();
        assertThat(placement.crossesAfter(unit(3, 1))).isFalse();
    }

    @Test
    void channelsJoinThePeersThatHaveAMicroBatchInCommon() {
        var schedule = new Schedule("x", SHAPE, Placement.loop(2, 1).wired(WIRING), idle(4));
        var channels = new Channels(schedule);

        assertThat(channels.count()).isEqualTo(4);
        assertThat(channels.at(channels.activationsInto(1, 1))).contains(new Channel(0, 1, 1, 0));
        assertThat(channels.at(channels.gradientsInto(0, 1))).contains(new Channel(1, 0, 0, 1));
        assertThat(channels.activationsInto(0, 0)).isEqualTo(Channels.NONE);
        assertThat(channels.gradientsInto(1, 0)).isEqualTo(Channels.NONE);
        assertThat(channels.activationsInto(1, 2)).isEqualTo(Channels.NONE);
        assertThat(schedule.placement().senderOf(new Channel(0, 1, 1, 0))).isEqualTo(2);
        assertThat(schedule.placement().receiverOf(new Channel(0, 1, 1, 0))).isEqualTo(1);
    }

    @Test
    void onePeerIsOnePipeline() {
        var alone = new Wiring(2, 1, List.of(List.of(0, 0)));

        assertThat(Placement.loop(2, 1).wired(alone)).isEqualTo(Placement.loop(2, 1));
    }

    @Test
    void everyStageOfAWiredOrderSumsGradientsTogetherAndSharedStagesWithEachOther() {
        PipelineShape shape = PipelineShape.of(3, 1).withPeers(2);
        var wiring = new Wiring(3, 2, List.of(List.of(0, 1, 0)));
        var schedule =
                new Schedule(
                        "x",
                        shape,
                        Placement.loop(3, 1).wired(wiring),
                        idle(6),
                        List.of(List.of(0, 2)));

        assertThat(schedule.reductionGroups()).containsExactly(List.of(0, 2), List.of(1));
    }

    @Test
    void whatDoesNotFitIsRefused() {
        assertThatThrownBy(() -> new Wiring(2, 2, List.of(List.of(0, 2))))
                .hasMessageContaining("peers are 0 to 1, got peer 2 of micro-batch 0");
        assertThatThrownBy(() -> new Wiring(2, 2, List.of(List.of(0, 0), List.of(0))))
                .hasMessageContaining("micro-batch 0 is wired at 2 stages, micro-batch 1 at 1");
        assertThatThrownBy(() -> new Wiring(2, 2, List.of(List.of(0, 0)), List.of(4)))
                .hasMessageContaining("absent rank 4");
        assertThatThrownBy(
                        () ->
                                Placement.loop(2, 1)
                                        .wired(
                                                new Wiring(
                                                        2, 2, List.of(List.of(1, 1)), List.of(3))))
                .hasMessageContaining("micro-batch 0 is wired to rank 3 at stage 1");
        assertThatThrownBy(() -> Placement.loop(3, 1).wired(WIRING))
                .hasMessageContaining("3 stages are placed, but micro-batches are wired at 2");
        assertThatThrownBy(() -> new Schedule("x", SHAPE, Placement.loop(2, 1), idle(4)))
                .hasMessageContaining("need a wiring of these, got 1, 2 and 2");
        assertThatThrownBy(
                        () ->
                                new Schedule(
                                        "x",
                                        PipelineShape.of(2, 3).withPeers(2),
                                        Placement.loop(2, 1).wired(WIRING),
                                        idle(4)))
                .hasMessageContaining("got 2, 2 and 2");
    }
}
