package dev.penstock.schedules.plan.slices;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.plan.Clusters;
import dev.penstock.schedules.plan.work.BlockWork;
import dev.penstock.schedules.plan.work.HardwareCosts;
import dev.penstock.schedules.plan.work.Layout;
import dev.penstock.schedules.plan.work.Layouts;
import dev.penstock.schedules.plan.work.ModelShape;
import dev.penstock.schedules.plan.work.PlanChoice;
import dev.penstock.schedules.plan.work.PlanRequest;
import dev.penstock.schedules.plan.work.RankHardware;
import dev.penstock.schedules.plan.work.TrainingBytes;
import dev.penstock.schedules.plan.work.ZeroStage;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

class HardwareSliceCostTest {
    private static final ModelShape MODEL = new ModelShape(40, 5_120, 40, 50_257, 2_048, true);

    private static PlanRequest request(int batch) {
        return new PlanRequest(MODEL, TrainingBytes.MIXED, Clusters.a100(5), batch);
    }

    @Test
    void aSliceCostsWhatTheSlowestStageComputesAndSendsTwice() {
        List<Integer> lengths = List.of(512, 1_024, 512);
        List<Integer> partition = Collections.nCopies(40, 1);
        var layout = new Layout(40, 1, 1);
        var choice = new PlanChoice(layout, ZeroStage.NONE, "terapipe", 1, 2, lengths, false);
        Placement placement = Placement.loop(40, 1);
        HardwareCosts costs = HardwareCosts.of(request(6), choice, partition, placement);

        SliceCost cost = HardwareSliceCost.of(request(6), layout, partition, 3);

        int context = 0;
        for (int slice = 0; slice < lengths.size(); slice++) {
            long slowest = 0;
            for (int stage = 0; stage < 40; stage++) {
                var unit = new WorkUnit(stage, 0, slice);
                long computed =
                        costs.nanos(stage, 0, new Op.Forward(unit))
                                + costs.nanos(stage, 0, new Op.Backward(unit));
                // the last rank's neighbour in the ring is the first
                long hop = costs.hopNanos(Math.min(stage, 38), slice);
                slowest = Math.max(slowest, computed + 2 * hop);
            }
            assertThat(cost.nanos(lengths.get(slice), context)).isEqualTo(slowest);
            context += lengths.get(slice);
        }
    }

    @Test
    void planningWithItBeatsEqualAndWholeSequences() {
        SliceCost cost =
                HardwareSliceCost.of(
                        request(1), new Layout(40, 1, 1), Collections.nCopies(40, 1), 1);

        SlicePlan plan = SlicePlanner.plan(cost, 2_048, 8, 40, 1, 0);

        for (int slices : new int[] {1, 2, 4, 8, 16, 32}) {
            List<Integer> equal = Layouts.equalSlices(2_048, slices);
            assertThat(plan.makespanNanos())
                    .isLessThanOrEqualTo(SlicePlan.of(equal, cost, 40).makespanNanos());
        }
        assertThat(plan.lengths()).hasSizeGreaterThan(4);
    }

    @Test
    void oneStageSendsNothing() {
        var model = new ModelShape(1, 64, 1, 100, 128, true);
        var request = new PlanRequest(model, TrainingBytes.MIXED, Clusters.laptops(1L << 30), 1);
        var block =
                BlockWork.of(
                        model,
                        TrainingBytes.MIXED,
                        RankHardware.of(request.cluster(), new Layout(1, 1, 1), 0),
                        1,
                        128,
                        64.5,
                        false);

        long nanos =
                HardwareSliceCost.of(request, new Layout(1, 1, 1), List.of(1), 1).nanos(128, 0);

        assertThat(nanos)
                .isEqualTo(
                        block.forward()
                                + block.backwardInput()
                                + block.backwardWeight()
                                + 2 * block.embedding()
                                + 3 * block.head());
    }
}
