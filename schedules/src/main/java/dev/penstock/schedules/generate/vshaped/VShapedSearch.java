package dev.penstock.schedules.generate.vshaped;

import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.generate.base.Pipeline;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/**
 * Finds the shortest schedule that can be made of one of some blocks under a limit on memory (Qi et
 * al. 2024, arXiv 2405.15362, section 2 and appendix A): repeat the block, push it together where
 * it has holes, and let the backwards for the weights give way to everything that somebody waits
 * for.
 */
final class VShapedSearch {
    private VShapedSearch() {}

    /**
     * The shortest schedule by these costs; at least one block must fit.
     *
     * @param limit chunks that a rank may hold; blocks that need more are passed over
     * @param costs entry r is rank r
     */
    static Schedule best(
            String name,
            PipelineShape shape,
            List<OpCosts> costs,
            int limit,
            List<VShapedBlock> blocks) {
        var units = new VUnits(shape.ranks(), shape.microBatches());
        VShapedOrder best =
                blocks.stream()
                        .map(block -> new VShapedSlots(units, block))
                        .filter(slots -> slots.peak() <= limit)
                        .flatMap(slots -> orders(units, slots, costs, limit))
                        .min(Comparator.comparingLong(VShapedOrder::makespan))
                        .orElseThrow();
        return Pipeline.v(name, shape, best::write);
    }

    private static Stream<VShapedOrder> orders(
            VUnits units, VShapedSlots slots, List<OpCosts> costs, int limit) {
        slots.pushTogether(limit);
        int[][] bare = slots.ordersWithoutWeights();
        List<OpCosts> equal = Collections.nCopies(units.ranks(), OpCosts.unit());
        var slotwise = new VShapedOrder(units, bare, equal, limit, WeightFilling.WHILE_WAITING);
        if (costs.equals(equal)) {
            return Stream.of(slotwise);
        }
        return Stream.of(
                new VShapedOrder(units, slotwise.orders(), costs, limit, WeightFilling.AS_GIVEN),
                new VShapedOrder(units, bare, costs, limit, WeightFilling.WHILE_WAITING),
                new VShapedOrder(units, bare, costs, limit, WeightFilling.IF_IT_FITS));
    }
}
