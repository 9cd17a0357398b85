package dev.penstock.schedules.lower;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.RandomOrders;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.base.ScheduleKind;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.simulate.MemoryCurve;
import dev.penstock.schedules.simulate.MemoryProfile;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.simulate.UnitCosts;
import dev.penstock.schedules.validate.MemoryModel;
import dev.penstock.schedules.validate.RankBytes;
import dev.penstock.schedules.validate.ScheduleValidator;
import dev.penstock.schedules.validate.Violation;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class OffloadsTest {
    private static Schedule oneRank(int microBatches, String ops) {
        return ScheduleText.parse(
                "ranks: 1\nmicro-batches: " + microBatches + "\nrank 0: " + ops + "\n");
    }

    private static Schedule offloaded(Schedule order, int lookAhead) {
        Set<Integer> all =
                IntStream.range(0, order.shape().stages()).boxed().collect(Collectors.toSet());
        return InsertOffloads.into(order, new OffloadSettings(all, lookAhead));
    }

    @Test
    void unitsLeaveAfterTheirForwardAndComeBackAhead() {
        Schedule order = Generators.generate("gpipe", PipelineShape.of(1, 4));

        assertThat(offloaded(order, 1).programs())
                .isEqualTo(
                        oneRank(
                                        4,
                                        "0F0 0OFFLOAD0 0F1 0OFFLOAD1 0F2 0OFFLOAD2 0RELOAD0"
                                                + " 0F3 0OFFLOAD3 0RELOAD1 0B0 0RELOAD2 0B1"
                                                + " 0RELOAD3 0B2 0B3")
                                .programs());
    }

    @Test
    void unitsThatSoonGoBackwardStay() {
        Schedule order = Generators.generate("1f1b", PipelineShape.of(2, 4));

        assertThat(offloaded(order, 1).program(1)).isEqualTo(order.program(1));
    }

    @ParameterizedTest
    @ValueSource(strings = {"1f1b", "gpipe", "interleaved-1f1b", "breadth-first", "v-half"})
    void loweredOrdersAreValidAndHoldLess(String kind) {
        boolean chunked = Generators.kind(kind).chunks() != ScheduleKind.Chunks.ONE;
        Schedule order =
                Generators.generate(kind, new PipelineShape(4, chunked ? 2 : 1, 8, List.of(16)));
        Schedule moved = Lowering.lower(offloaded(order, 1));

        ScheduleValidator.validate(moved).orThrow();
        assertThat(MemoryProfile.of(moved, PassKind.TRAINING).peakUnits())
                .isLessThan(MemoryProfile.of(order, PassKind.TRAINING).peakUnits());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "0OFFLOAD0 0F0 0F1 0RELOAD0 0B0 0B1       | 0OFFLOAD0 comes before 0F0",
                "0F0 0RELOAD0 0F1 0OFFLOAD0 0B0 0B1       | 0RELOAD0 comes before 0OFFLOAD0",
                "0F0 0OFFLOAD0 0F1 0B0 0RELOAD0 0B1       | 0B0 comes before 0RELOAD0",
                "0F0 0OFFLOAD0 0F1 0I0 0RELOAD0 0W0 0B1   | 0I0 comes before 0RELOAD0",
                "0F0 0OFFLOAD0 0F1 0B0 0B1                | rank 0 has no 0RELOAD0",
                "0F0 0F1 0RELOAD0 0B0 0B1                 | rank 0 has no 0OFFLOAD0",
                "0F0 0OFFLOAD0 0OFFLOAD0 0F1 0RELOAD0 0B0 0B1 | 0OFFLOAD0 appears twice",
                "0F0 0OFFLOAD0 0F1 0RELOAD0 0RELOAD0 0B0 0B1  | 0RELOAD0 appears twice",
                "0F0 0OFFLOAD0 0F1 0RELOAD0 0R0 0B0 0B1   | has a recompute beside it",
                "0F0 0F1 0B0 0OFFLOAD0 0RELOAD0 0B1       | 0B0 comes before 0RELOAD0"
            })
    void theJudgeNamesWhatIsWrong(String ops, String message) {
        assertThat(ScheduleValidator.validate(oneRank(2, ops.strip())).violations())
                .extracting(Violation::message)
                .anySatisfy(found -> assertThat(found).contains(message.strip()));
    }

    /** Position by position, for orders of all kinds. */
    @Test
    void deviceAndHostHoldWhatTheOrderSays() {
        for (int seed = 0; seed < 60; seed++) {
            Schedule order = offloaded(RandomOrders.schedule(seed), seed % 3);
            if (order.programs().stream()
                    .flatMap(program -> program.ops().stream())
                    .anyMatch(op -> op instanceof Op.Recompute)) {
                continue;
            }
            PipelineShape shape = order.shape();
            MemoryModel model = MemoryModel.uniform(shape, 100, 1, 0);

            List<RankBytes> peaks = RankBytes.of(order, PassKind.TRAINING, model);

            for (RankProgram program : order.programs()) {
                long device = 0;
                long host = 0;
                for (int at = 0; at < program.ops().size(); at++) {
                    long here = 0;
                    long away = 0;
                    for (int unit = 0; unit < shape.units(); unit++) {
                        here += isHere(program.ops(), shape.unitAt(unit), at) ? 100 : 0;
                        away += isAway(program.ops(), shape.unitAt(unit), at) ? 100 : 0;
                    }
                    device = Math.max(device, here);
                    host = Math.max(host, away);
                }
                assertThat(peaks.get(program.rank()).peakBytes()).isEqualTo(device);
                assertThat(peaks.get(program.rank()).hostBytes()).isEqualTo(host);
            }
        }
    }

    private static boolean isHere(List<Op> ops, WorkUnit unit, int at) {
        int begin = first(ops, new Op.Forward(unit));
        int end =
                Math.max(
                        first(ops, new Op.Backward(unit)), first(ops, new Op.BackwardWeight(unit)));
        int leaves = first(ops, new Op.Offload(unit));
        int comes = first(ops, new Op.Reload(unit));
        return begin >= 0
                && begin <= at
                && at <= end
                && (leaves < 0 || at <= leaves || at >= comes);
    }

    private static boolean isAway(List<Op> ops, WorkUnit unit, int at) {
        int leaves = first(ops, new Op.Offload(unit));
        return leaves >= 0 && leaves <= at && at <= first(ops, new Op.Reload(unit));
    }

    private static int first(List<Op> ops, Op wanted) {
        for (int i = 0; i < ops.size(); i++) {
            if (ops.get(i).equals(wanted) || ops.get(i).computations().contains(wanted)) {
                return i;
            }
        }
        return -1;
    }

    /** f = 1, b = 2, and t of each way. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                // its room is for the next forward, which waits until it is empty: f+t + f+b + t+b
                "5 | 0F0 0OFFLOAD0 0F1 0B1 0RELOAD0 0B0 | 16",
                // there is room for both: f + 2t + b
                "5 | 0F0 0OFFLOAD0 0F1 0RELOAD0 0B1 0B0 | 13",
                // the ways take place beside computations: 2f + 2b
                "1 | 0F0 0OFFLOAD0 0F1 0RELOAD0 0B1 0B0 | 6"
            })
    void oneStageTakesAsLongAsTheFormulaSays(long way, String ops, long makespan) {
        var timeline =
                ScheduleSimulator.simulate(
                        oneRank(2, ops.strip()), UnitCosts.parse("offload=" + way));

        assertThat(timeline.makespanNanos()).isEqualTo(makespan);
    }

    /** Of a way no longer than a forward a GPipe of one stage shows one: where it turns round. */
    @Test
    void shortWaysHideBehindComputations() {
        Schedule order = Generators.generate("gpipe", PipelineShape.of(1, 8));
        UnitCosts costs = UnitCosts.parse("forward=10,backward=20,offload=5");

        assertThat(ScheduleSimulator.simulate(offloaded(order, 1), costs).makespanNanos())
                .isEqualTo(8 * 30 + 5);
    }

    @Test
    void theCurveOfAStepStaysWithinTheProof() {
        Schedule order = offloaded(Generators.generate("gpipe", PipelineShape.of(1, 8)), 1);
        for (long way : List.of(1, 5, 30)) {
            var timeline = ScheduleSimulator.simulate(order, UnitCosts.parse("offload=" + way));

            assertThat(MemoryCurve.of(timeline, PassKind.TRAINING).getFirst().peakActivations())
                    .isLessThanOrEqualTo(
                            MemoryProfile.of(order, PassKind.TRAINING)
                                    .ranks()
                                    .getFirst()
                                    .peakUnits());
        }
    }
}
