package dev.penstock.schedules.simulate;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.RandomOrders;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.lower.Lowering;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.function.BiPredicate;
import java.util.function.ToLongBiFunction;

class MemoryProfileTest {
    @Test
    void trainingHoldsUnitsFromForwardToBackward() {
        Schedule schedule =
                ScheduleText.parse(
                        """
                        ranks: 1
                        chunks: 2
                        micro-batches: 2
                        slices: 2
                        rank 0: 0F0s0 0F0s1 1F0s0 0F1s0 1F0s1 1B0s1 0B0s1 1B0s0
                                0B0s0 0F1s1 1F1s0 1F1s1 1B1s1 0B1s1 1B1s0 0B1s0
                        """);

        MemoryProfile profile = MemoryProfile.of(schedule, PassKind.TRAINING);

        assertThat(profile.stages())
                .containsExactly(
                        new StagePeak(0, 0, 3, List.of(2, 1), 2, 1, 0, 0, 0),
                        new StagePeak(0, 1, 2, List.of(1, 1), 1, 1, 0, 0, 0));
        // 0F0s0 0F0s1 1F0s0 0F1s0 1F0s1 are live when the fifth op runs
        assertThat(profile.ranks()).containsExactly(new MemoryProfile.RankPeak(0, 5, 4));
    }

    @Test
    void backwardsThatInterleaveMicroBatchesAreCounted() {
        Schedule schedule =
                ScheduleText.parse(
                        """
                        ranks: 1
                        micro-batches: 2
                        slices: 2
                        rank 0: 0F0s0 0F0s1 0F1s0 0F1s1 0B0s1 0B1s1 0B1s0 0B0s0
                        """);

        assertThat(MemoryProfile.of(schedule, PassKind.TRAINING).stages())
                .containsExactly(new StagePeak(0, 0, 4, List.of(2, 2), 2, 2, 0, 0, 0));
    }

    @Test
    void anEvaluationHoldsMicroBatchesUntilTheirLastSlice() {
        Schedule schedule =
                ScheduleText.parse(
                        """
                        ranks: 1
                        micro-batches: 3
                        slices: 2
                        rank 0: 0F0s0 0F1s0 0F1s1 0F2s0 0F0s1 0F2s1
                        """);

        assertThat(MemoryProfile.of(schedule, PassKind.FORWARD_ONLY).stages())
                .containsExactly(new StagePeak(0, 0, 1, List.of(1, 1), 2, 0, 0, 0, 0));
    }

    @Test
    void agreesWithCountingAtEveryOp() {
        RandomOrders.some(300)
                .forEach(
                        order -> {
                            MemoryProfile profile =
                                    MemoryProfile.of(Lowering.lower(order), PassKind.TRAINING);

                            for (StagePeak peak : profile.stages()) {
                                List<Op> ops = ofStage(order, peak);
                                assertThat(peak.peakUnits())
                                        .isEqualTo(most(ops, (live, _) -> live.size()));
                                assertThat(peak.peakMicroBatches())
                                        .isEqualTo(
                                                most(
                                                        ops,
                                                        (live, _) -> microBatches(live),
                                                        (_, _) -> true));
                                assertThat(peak.peakBackwardMicroBatches())
                                        .isEqualTo(
                                                most(
                                                        ops,
                                                        (_, i) ->
                                                                inBackward(
                                                                        ops,
                                                                        i,
                                                                        order.shape().slices())));
                                for (int s = 0; s < order.shape().slices(); s++) {
                                    int slice = s;
                                    assertThat(peak.peakUnitsPerSlice().get(s))
                                            .isEqualTo(
                                                    most(
                                                            ops,
                                                            (live, _) ->
                                                                    live.stream()
                                                                            .filter(
                                                                                    u ->
                                                                                            u
                                                                                                            .slice()
                                                                                                    == slice)
                                                                            .count()));
                                }
                            }
                        });
    }

    private static List<Op> ofStage(Schedule order, StagePeak peak) {
        return order.program(peak.rank()).ops().stream()
                .filter(op -> op.stage() == peak.stage())
                .toList();
    }

    /** The largest count over all ops, of the units live during each. */
    private static int most(
            List<Op> ops,
            ToLongBiFunction<List<WorkUnit>, Integer> count,
            BiPredicate<Integer, WorkUnit> counts) {
        long most = 0;
        for (int i = 0; i < ops.size(); i++) {
            var live = new ArrayList<WorkUnit>();
            for (Op op : ops.subList(0, i + 1)) {
                if (op instanceof Op.Forward(WorkUnit unit)
                        && !ended(ops.subList(0, i), unit)
                        && counts.test(i, unit)) {
                    live.add(unit);
                }
            }
            most = Math.max(most, count.applyAsLong(live, i));
        }
        return (int) most;
    }

    private static boolean ended(List<Op> before, WorkUnit unit) {
        return before.contains(new Op.Backward(unit))
                || before.contains(new Op.BackwardWeight(unit));
    }

    /** The same without the units that wait for their recompute. */
    private static int most(List<Op> ops, ToLongBiFunction<List<WorkUnit>, Integer> count) {
        return most(
                ops,
                count,
                (i, unit) -> {
                    int forward = ops.indexOf(new Op.Forward(unit));
                    int recompute = ops.indexOf(new Op.Recompute(unit));
                    return recompute < 0 || i == forward || i >= recompute;
                });
    }

    private static long microBatches(List<WorkUnit> live) {
        return live.stream().map(WorkUnit::microBatch).distinct().count();
    }

    private static long inBackward(List<Op> ops, int position, int slices) {
        List<Integer> before = backwards(ops.subList(0, position));
        return backwards(ops.subList(0, position + 1)).stream()
                .distinct()
                .filter(mb -> before.stream().filter(mb::equals).count() < slices)
                .count();
    }

    private static List<Integer> backwards(List<Op> ops) {
        return ops.stream()
                .filter(op -> op instanceof Op.InputGradient)
                .map(op -> ((Op.InputGradient) op).unit().microBatch())
                .toList();
    }
}
