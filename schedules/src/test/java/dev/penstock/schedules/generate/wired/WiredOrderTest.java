package dev.penstock.schedules.generate.wired;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.schedules.generate.OneForwardOneBackward;
import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.generate.wired.WiredOrder.Backwards;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.ir.TorchCsv;
import dev.penstock.schedules.ir.Wiring;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.lower.LoweringOptions;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.CriticalPath;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.simulate.MemoryProfile;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.simulate.StagePeak;
import dev.penstock.schedules.simulate.Traffic;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.ScheduleValidator;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class WiredOrderTest {
    private static List<OpCosts> equal(PipelineShape shape) {
        return Collections.nCopies(shape.ranks(), OpCosts.unit());
    }

    private static long makespan(Schedule schedule, List<OpCosts> costs) {
        return ScheduleSimulator.simulate(schedule, new RankCosts(schedule.placement(), costs))
                .makespanNanos();
    }

    private static List<Integer> capsOf(PipelineShape shape, int more) {
        return WiredOrder.usualCaps(shape).stream().map(cap -> cap + more).toList();
    }

    /** Every wiring of the shape. */
    private static Stream<Placement> wirings(PipelineShape shape) {
        int places = shape.microBatches() * shape.stages();
        int count = (int) Math.pow(shape.peers(), places);
        var pipeline = Placement.loop(shape.pipelineRanks(), 1);
        return IntStream.range(0, count)
                .mapToObj(
                        number -> {
                            int rest = number;
                            var table = new ArrayList<List<Integer>>();
                            for (int m = 0; m < shape.microBatches(); m++) {
                                var row = new ArrayList<Integer>();
                                for (int stage = 0; stage < shape.stages(); stage++) {
                                    row.add(rest % shape.peers());
                                    rest /= shape.peers();
                                }
                                table.add(row);
                            }
                            return pipeline.wired(
                                    new Wiring(shape.pipelineRanks(), shape.peers(), table));
                        });
    }

    private static void proves(Schedule order, List<OpCosts> costs, List<Integer> caps) {
        Conditions training = Conditions.training();
        ScheduleValidator.validate(order).orThrow();
        Schedule late = Lowering.lower(order);
        ScheduleValidator.validate(late, training.with(InFlight.auto(late))).orThrow();
        Schedule tight = Lowering.lower(order, LoweringOptions.plain().withCapacity(1));
        ScheduleValidator.validate(tight, training.with(InFlight.uniform(1))).orThrow();
        for (StagePeak peak : MemoryProfile.of(late, PassKind.TRAINING).stages()) {
            assertThat(peak.peakMicroBatches()).isLessThanOrEqualTo(caps.get(peak.rank()));
        }
        assertThat(new WiredStarts(order, costs).makespan()).hasValue(makespan(order, costs));
        assertThat(makespan(late, costs)).isEqualTo(makespan(order, costs));
        CriticalPath path =
                CriticalPath.of(
                        tight, new RankCosts(tight.placement(), costs), InFlight.uniform(1));
        assertThat(path.steps().getFirst().fromNanos()).isZero();
    }

    private static void readsBack(Schedule order) {
        assertThat(ScheduleText.parse(ScheduleText.print(order))).isEqualTo(order);
        Schedule lowered = Lowering.lower(order);
        assertThat(ScheduleText.parse(ScheduleText.print(lowered))).isEqualTo(lowered);
    }

    @ParameterizedTest
    @CsvSource({
        "2, 2, 1, 1",
        "2, 2, 2, 1",
        "2, 2, 3, 1",
        "2, 2, 4, 1",
        "2, 3, 2, 1",
        "3, 2, 2, 1",
        "2, 2, 2, 2",
        "2, 1, 4, 1",
        "4, 2, 1, 3"
    })
    void everyWiringOfASmallShapeIsProvedAndKeepsItsCaps(
            int peers, int stages, int microBatches, int slices) {
        PipelineShape shape = PipelineShape.of(stages, microBatches, slices).withPeers(peers);
        wirings(shape)
                .forEach(
                        placement -> {
                            for (Backwards backwards : Backwards.values()) {
                                for (int more = 0; more < 2; more++) {
                                    List<Integer> caps =
                                            more == 0
                                                    ? Collections.nCopies(shape.ranks(), 1)
                                                    : capsOf(shape, more);
                                    Schedule order =
                                            WiredOrder.schedule(
                                                    shape,
                                                    placement,
                                                    backwards,
                                                    equal(shape),
                                                    caps);
                                    if (slices == 1) {
                                        proves(order, equal(shape), caps);
                                    } else {
                                        ScheduleValidator.validate(Lowering.lower(order)).orThrow();
                                    }
                                    readsBack(order);
                                }
                            }
                        });
    }

    @ParameterizedTest
    @EnumSource(Backwards.class)
    void randomWiringsOfUnequalRanksAreProvedAndKeepTheirCaps(Backwards backwards) {
        PipelineShape shape = PipelineShape.of(3, 14).withPeers(3);
        List<OpCosts> costs =
                IntStream.range(0, shape.ranks())
                        .mapToObj(r -> new OpCosts(3 + r % 4, 4 + r % 3, 2 + r % 5, 1 + r % 2))
                        .toList();
        for (long seed = 0; seed < 100; seed++) {
            List<Integer> caps = capsOf(shape, (int) (seed % 3));
            Placement placement = Wirings.equal(shape).random(seed);
            Schedule order = WiredOrder.schedule(shape, placement, backwards, costs, caps);

            proves(order, costs, caps);
            readsBack(order);
        }
    }

    @ParameterizedTest
    @CsvSource({"1, 1", "1, 5", "2, 1", "2, 6", "3, 2", "4, 8", "4, 3"})
    void aStraightWiringIsOneForwardOneBackwardOfEveryReplica(int stages, int each) {
        PipelineShape shape = PipelineShape.of(stages, 3 * each).withPeers(3);
        var plain = OneForwardOneBackward.schedule(PipelineShape.of(stages, each));
        Schedule order =
                WiredOrder.schedule(
                        shape,
                        Wirings.equal(shape).straight(),
                        Backwards.FULL,
                        equal(shape),
                        WiredOrder.usualCaps(shape));

        for (int rank = 0; rank < shape.ranks(); rank++) {
            int first = rank / stages * each;
            List<String> moved =
                    plain.program(rank % stages).ops().stream()
                            .map(op -> moved((Op.UnitOp) op, first))
                            .toList();
            assertThat(order.program(rank).ops().stream().map(op -> OpText.print(op, false)))
                    .isEqualTo(moved);
        }
        assertThat(makespan(order, equal(shape)))
                .isEqualTo(
                        ScheduleSimulator.simulate(plain, CostModel.of(1, 2, 0)).makespanNanos());
    }

    private static String moved(Op.UnitOp op, int first) {
        String kind = op instanceof Op.Forward ? "F" : "B";
        return op.stage() + kind + (op.unit().microBatch() + first);
    }

    /** Rerouting alone cannot be faster than the stage's own work: 4/3 of the usual. */
    @ParameterizedTest
    @CsvSource({
        "FULL, 4, 2", "FULL, 8, 2", "FULL, 16, 2", "FULL, 64, 2",
        "SPLIT, 16, 0", "SPLIT, 16, 2", "SPLIT, 64, 0", "SPLIT, 64, 2"
    })
    void withOneOfEightRanksDeadAStepTakesAtMostSevenFifths(
            Backwards backwards, int each, int more) {
        PipelineShape shape = PipelineShape.of(2, 4 * each).withPeers(4);
        var wirings = Wirings.equal(shape);
        List<Integer> caps = capsOf(shape, more);
        Schedule usual =
                WiredOrder.schedule(shape, wirings.straight(), backwards, equal(shape), caps);
        for (int dead = 0; dead < shape.ranks(); dead++) {
            Schedule degraded =
                    WiredOrder.schedule(
                            shape,
                            wirings.without(wirings.straight(), dead),
                            backwards,
                            equal(shape),
                            caps);
            proves(degraded, equal(shape), caps);
            readsBack(degraded);
            long least = 3L * (4 * each + 2) / 3;

            assertThat(makespan(degraded, equal(shape)))
                    .isGreaterThanOrEqualTo(least)
                    .isLessThanOrEqualTo(makespan(usual, equal(shape)) * 7 / 5);
        }
    }

    /** Split backwards do with 1F1B's room where full ones need more, the more the deeper. */
    @ParameterizedTest
    @CsvSource({"FULL, 4", "SPLIT, 0", "SPLIT, 4"})
    void deeperPipelinesGoOnWithoutARankToo(Backwards backwards, int more) {
        PipelineShape shape = PipelineShape.of(4, 4 * 16).withPeers(4);
        var wirings = Wirings.equal(shape);
        List<Integer> caps = capsOf(shape, more);
        long usual =
                makespan(
                        WiredOrder.schedule(
                                shape, wirings.straight(), backwards, equal(shape), caps),
                        equal(shape));
        for (int dead = 0; dead < shape.ranks(); dead++) {
            Schedule degraded =
                    WiredOrder.schedule(
                            shape,
                            wirings.without(wirings.straight(), dead),
                            backwards,
                            equal(shape),
                            caps);
            proves(degraded, equal(shape), caps);

            assertThat(makespan(degraded, equal(shape))).isLessThanOrEqualTo(usual * 7 / 5);
        }
    }

    @ParameterizedTest
    @EnumSource(Backwards.class)
    void peersOfUnequalSpeedReachNineTenthsOfTheSumOfTheirSpeeds(Backwards backwards) {
        int microBatches = 64;
        PipelineShape shape = PipelineShape.of(2, microBatches).withPeers(2);
        var fast = new OpCosts(1, 1, 1, 0);
        var slow = new OpCosts(3, 3, 3, 0);
        List<OpCosts> costs = List.of(fast, fast, slow, slow);
        Wirings wirings = Wirings.equal(shape).withNanos(List.of(3L, 3L, 9L, 9L));
        List<Integer> caps = WiredOrder.usualCaps(shape);

        Schedule balanced = WiredOrder.schedule(shape, wirings.balanced(), backwards, costs, caps);
        Schedule straight = WiredOrder.schedule(shape, wirings.straight(), backwards, costs, caps);
        proves(balanced, costs, caps);

        // micro-batches in the time that the fast one takes for one
        double reached = 3.0 * microBatches / makespan(balanced, costs);
        double equalSplit = 3.0 * microBatches / makespan(straight, costs);
        assertThat(reached).isBetween(0.9 * 4 / 3, 4.0 / 3);
        assertThat(equalSplit).isBetween(0.6, 2.0 / 3);
    }

    /** The fast rank of stage 0 is in another pipeline than that of stage 1. */
    @Test
    void fastRanksOfDifferentPipelinesWorkForEachOther() {
        int microBatches = 64;
        PipelineShape shape = PipelineShape.of(2, microBatches).withPeers(2);
        var fast = new OpCosts(1, 1, 1, 0);
        var slow = new OpCosts(3, 3, 3, 0);
        List<OpCosts> costs = List.of(fast, slow, slow, fast);
        Wirings wirings = Wirings.equal(shape).withNanos(List.of(3L, 9L, 9L, 3L));

        Schedule balanced =
                WiredOrder.schedule(
                        shape, wirings.balanced(), Backwards.SPLIT, costs, capsOf(shape, 1));
        Schedule straight =
                WiredOrder.schedule(
                        shape, wirings.straight(), Backwards.SPLIT, costs, capsOf(shape, 1));

        assertThat(3.0 * microBatches / makespan(balanced, costs)).isGreaterThan(0.9 * 4 / 3);
        assertThat(3.0 * microBatches / makespan(straight, costs)).isLessThan(2.0 / 3 + 0.01);
    }

    @Test
    void aRankWithoutMicroBatchesStillSumsGradientsAndAnAbsentOneDoesNot() {
        PipelineShape shape = PipelineShape.of(2, 1).withPeers(3);
        Placement placement =
                Placement.loop(2, 1).wired(new Wiring(2, 3, List.of(List.of(0, 1)), List.of(4)));
        Schedule order =
                WiredOrder.schedule(
                        shape,
                        placement,
                        Backwards.FULL,
                        equal(shape),
                        WiredOrder.usualCaps(shape));
        Schedule lowered = Lowering.lower(order);

        assertThat(lowered.program(0).ops().stream().map(op -> OpText.print(op, false)))
                .containsExactly("0F0", "0SEND_F0", "0RECV_B0", "0B0", "0REDUCE_GRAD");
        assertThat(lowered.program(3).ops().stream().map(op -> OpText.print(op, false)))
                .containsExactly("1RECV_F0", "1F0", "1B0", "1SEND_B0", "1REDUCE_GRAD");
        assertThat(lowered.program(1).ops()).containsExactly(new Op.ReduceGradients(1));
        assertThat(lowered.program(2).ops()).containsExactly(new Op.ReduceGradients(0));
        assertThat(lowered.program(4).ops()).isEmpty();
        assertThat(lowered.program(5).ops()).containsExactly(new Op.ReduceGradients(1));
        ScheduleValidator.validate(lowered).orThrow();
        // nobody leaves the sum before the last has come: rank 1 has waited for rank 3
        var timeline = ScheduleSimulator.simulate(lowered, CostModel.of(1, 2, 0));
        assertThat(timeline.endNanos(1, 0)).isEqualTo(4);
        assertThat(timeline.endNanos(2, 0)).isEqualTo(6);
    }

    @Test
    void tensorsTravelBetweenTheRanksOfTheWiring() {
        PipelineShape shape = PipelineShape.of(2, 4).withPeers(2);
        var wirings = Wirings.equal(shape);
        Schedule order =
                WiredOrder.schedule(
                        shape,
                        wirings.without(wirings.straight(), 1),
                        Backwards.FULL,
                        equal(shape),
                        WiredOrder.usualCaps(shape));

        Traffic traffic = Traffic.of(Lowering.lower(order), (_, _) -> 10);

        assertThat(traffic.links())
                .containsExactly(
                        new Traffic.OfLink(0, 3, new Traffic.Volume(2, 20)),
                        new Traffic.OfLink(2, 3, new Traffic.Volume(2, 20)),
                        new Traffic.OfLink(3, 0, new Traffic.Volume(2, 20)),
                        new Traffic.OfLink(3, 2, new Traffic.Volume(2, 20)));
    }

    @Test
    void aFileOfActionsSaysItsWiringToo() {
        PipelineShape shape = PipelineShape.of(2, 12).withPeers(3);
        var wirings = Wirings.equal(shape);
        for (Placement placement :
                List.of(
                        wirings.straight(),
                        wirings.balanced(),
                        wirings.random(7),
                        wirings.without(wirings.straight(), 3))) {
            Schedule order =
                    WiredOrder.schedule(
                            shape,
                            placement,
                            Backwards.SPLIT,
                            equal(shape),
                            WiredOrder.usualCaps(shape));
            Schedule lowered = Lowering.lower(order);

            Schedule read = TorchCsv.read(TorchCsv.print(lowered)).schedule();
            Schedule padded = TorchCsv.read(TorchCsv.printPadded(lowered)).schedule();

            assertThat(read.placement()).isEqualTo(placement);
            assertThat(read.shape()).isEqualTo(shape);
            assertThat(read.programs()).isEqualTo(lowered.programs());
            assertThat(padded).isEqualTo(read);
        }
    }

    @Test
    void chunksAndMissingCapsAreRefused() {
        var chunked = new PipelineShape(2, 2, 4, List.of(1)).withPeers(2);
        var shape = PipelineShape.of(2, 4).withPeers(2);
        Placement straight = Wirings.equal(shape).straight();

        assertThatThrownBy(
                        () ->
                                WiredOrder.schedule(
                                        chunked,
                                        Wirings.equal(chunked).straight(),
                                        Backwards.FULL,
                                        equal(chunked),
                                        WiredOrder.usualCaps(chunked)))
                .hasMessageContaining("one stage per rank");
        assertThatThrownBy(
                        () ->
                                WiredOrder.schedule(
                                        shape,
                                        straight,
                                        Backwards.FULL,
                                        equal(shape),
                                        List.of(1, 1, 1, 0)))
                .hasMessageContaining("a cap of 1 micro-batch or more");
    }
}
