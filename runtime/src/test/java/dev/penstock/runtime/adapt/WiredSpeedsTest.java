package dev.penstock.runtime.adapt;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.runtime.model.shape.FineTuning;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.runtime.model.shape.TrainedParts;
import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.generate.wired.WiredOrder;
import dev.penstock.schedules.generate.wired.WiredOrder.Backwards;
import dev.penstock.schedules.generate.wired.Wirings;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.simulate.ComputeKind;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.simulate.MeasuredMeans;
import dev.penstock.schedules.simulate.ProfileLine;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Micro-batches follow the speed of each rank, where replicas share them. */
class WiredSpeedsTest {
    private static final int MICRO_BATCHES = 64;

    /** Orders of two replicas, made for what their ranks cost. */
    private record Orders(int stages, int microBatches, List<Integer> absent)
            implements SpeedModel.Candidates {
        @Override
        public List<String> kinds() {
            return List.of("wired-1f1b");
        }

        @Override
        public Optional<SpeedModel.Order> order(String kind, List<Integer> costs) {
            PipelineShape shape = PipelineShape.of(stages, microBatches).withPeers(2);
            List<OpCosts> ofRanks =
                    costs.isEmpty()
                            ? Collections.nCopies(shape.ranks(), OpCosts.unit())
                            : IntStream.range(0, shape.ranks())
                                    .mapToObj(
                                            rank ->
                                                    new OpCosts(
                                                            costs.get(3 * rank),
                                                            costs.get(3 * rank + 1),
                                                            costs.get(3 * rank + 2),
                                                            0))
                                    .toList();
            Wirings wirings = Wirings.equal(shape).withCosts(ofRanks);
            Placement placement = wirings.balanced();
            for (int rank : absent) {
                placement = wirings.without(placement, rank);
            }
            Schedule order =
                    Lowering.lower(
                            WiredOrder.schedule(
                                    shape,
                                    placement,
                                    Backwards.FULL,
                                    ofRanks,
                                    WiredOrder.usualCaps(shape).stream()
                                            .map(cap -> cap + stages)
                                            .toList()));
            return Optional.of(new SpeedModel.Order(kind, costs, order, InFlight.auto(order)));
        }

        SpeedModel model(List<Integer> costs) {
            List<Integer> layers = Collections.nCopies(stages, 4);
            return new SpeedModel(
                    order("wired-1f1b", costs).orElseThrow(),
                    new StagePartition(layers),
                    new TrainedParts(
                            ModelShape.gpt2(2, 2, 96, 4 * stages, 3, true), FineTuning.FULL),
                    false,
                    this,
                    (each, _) -> each,
                    1_000);
        }
    }

    /**
     * What ranks of these speeds measure, of which one of speed 1 takes 1 ms forward and 2 back.
     *
     * @param speeds 0 for a rank that did nothing
     */
    private static Measured measured(int stages, double... speeds) {
        List<List<ProfileLine>> ranks = new ArrayList<>();
        List<ProfileLine> means = new ArrayList<>();
        for (int rank = 0; rank < speeds.length; rank++) {
            List<ProfileLine> lines = new ArrayList<>();
            if (speeds[rank] > 0) {
                long nanos = Math.round(1e6 / speeds[rank]);
                int stage = rank % stages;
                lines.add(new ProfileLine.Computation(ComputeKind.FORWARD, stage, 0, nanos));
                lines.add(new ProfileLine.Computation(ComputeKind.BACKWARD, stage, 0, 2 * nanos));
            }
            ranks.add(lines);
            if (rank < stages) {
                means.addAll(lines);
            }
        }
        return new Measured(means, ranks);
    }

    private static List<Integer> microBatches(Schedule order) {
        var wiring = order.placement().wiring().orElseThrow();
        return IntStream.range(0, wiring.ranks())
                .map(
                        rank ->
                                wiring.microBatchesOf(
                                                wiring.peerOfRank(rank),
                                                wiring.pipelineRankOf(rank))
                                        .size())
                .boxed()
                .toList();
    }

    /** Without stages to wait for, a step takes what the rank with the most to do takes. */
    @Test
    void aPeerOfAThirdOfTheSpeedDoesAThirdAsMany() {
        SpeedModel.Proposal found =
                new Orders(1, MICRO_BATCHES, List.of())
                        .model(List.of())
                        .propose(measured(1, 1, 1.0 / 3), List.of());

        assertThat(microBatches(found.formerOrder().schedule())).containsExactly(32, 32);
        assertThat(microBatches(found.order().schedule())).containsExactly(48, 16);
        assertThat(found.order().costs())
                .as("microseconds, in two digits")
                .containsExactly(1000, 1000, 1000, 3000, 3000, 3000);
        assertThat(found.nanosNow()).isEqualTo(32 * 9_000_000);
        assertThat(found.nanosThen()).isCloseTo(48 * 3_000_000, within(6L));
        assertThat(found.slowest()).isCloseTo(1.0 / 3, within(0.001));
        assertThat(found.keepsStages()).isTrue();
        assertThat(found.words())
                .startsWith("[48, 16] micro-batches of the ranks instead of [32, 32] would take");
    }

    /** Of the sum of both speeds, 4/3, more than nine tenths. */
    @Test
    void twoPipelinesOfUnequalSpeedReachNineTenthsOfTheirSum() {
        SpeedModel.Proposal found =
                new Orders(2, MICRO_BATCHES, List.of())
                        .model(List.of())
                        .propose(measured(2, 1, 1, 1.0 / 3, 1.0 / 3), List.of());

        double perFast = MICRO_BATCHES * 3e6 / found.nanosThen();
        assertThat(perFast).isBetween(0.9 * 4 / 3, 4.0 / 3);
        assertThat(microBatches(found.order().schedule())).containsExactly(48, 48, 16, 16);
    }

    @Test
    void ranksOfOneSpeedKeepTheirOrder() {
        SpeedModel.Proposal same =
                new Orders(2, MICRO_BATCHES, List.of())
                        .model(List.of())
                        .propose(measured(2, 1, 1, 1, 1), List.of());

        assertThat(same.nanosThen()).isEqualTo(same.nanosNow());
        assertThat(same.order()).isEqualTo(same.formerOrder());
    }

    /** Rank 1 is so slow that it got nothing: of it only its part in the sums is measured. */
    @Test
    void aRankThatDidNothingIsSlowAsBefore() {
        List<Integer> costs = List.of(1, 1, 1, 100, 100, 100);
        SpeedModel model = new Orders(1, 8, List.of()).model(costs);
        Schedule order = model.order().schedule();
        var means = new MeasuredMeans();
        means.add(List.of(ScheduleSimulator.simulate(order, CostModel.of(1000, 2000, 0))));

        SpeedModel.Proposal found = model.propose(Measured.of(means), List.of());

        assertThat(microBatches(order)).containsExactly(8, 0);
        assertThat(means.ofRanks().get(1)).isEmpty();
        assertThat(found.nanosThen()).isEqualTo(found.nanosNow()).isEqualTo(8 * 3000);
    }

    /** Rank 2 is gone; what it would cost when it is back is what it cost before. */
    @Test
    void whoIsAbsentStaysAbsentAndKeepsItsPlaceAmongTheCosts() {
        SpeedModel.Proposal found =
                new Orders(2, MICRO_BATCHES, List.of(2))
                        .model(List.of(10, 10, 10, 10, 10, 10, 40, 40, 40, 10, 10, 10))
                        .propose(measured(2, 1, 1, 0, 1.0 / 3), List.of());

        assertThat(microBatches(found.order().schedule())).containsExactly(64, 48, 0, 16);
        assertThat(found.order().wiring().orElseThrow().absent()).containsExactly(2);
        assertThat(found.order().costs())
                .containsExactly(
                        1000, 1000, 1000, 1000, 1000, 1000, 4000, 4000, 4000, 3000, 3000, 3000);
    }
}
