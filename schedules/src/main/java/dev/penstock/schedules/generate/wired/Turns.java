package dev.penstock.schedules.generate.wired;

import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.HashMap;
import java.util.Map;

/**
 * In which turn a rank begins with micro-batches. A rank has some from and for each of several
 * others; if it did all of one first, the rest would starve. So those that it has in common with
 * another rank are spread evenly over its step: of 16 in common with one and 5 with another, the
 * first comes at 1/32, 3/32 and so on, the second at 1/10, 3/10. The latest of a micro-batch's
 * times counts.
 */
final class Turns {
    private static final long WHOLE = 1 << 30;

    /** By stage, then micro-batch. */
    private final long[][] turns;

    Turns(PipelineShape shape, Placement placement) {
        this.turns = new long[shape.stages()][shape.microBatches()];
        for (int stage = 0; stage < shape.stages(); stage++) {
            for (int other = 0; other < shape.stages(); other++) {
                if (other != stage) {
                    spread(shape, placement, stage, other);
                }
            }
        }
    }

    private void spread(PipelineShape shape, Placement placement, int stage, int other) {
        Map<Long, Integer> inCommon = new HashMap<>();
        var before = new int[shape.microBatches()];
        for (int m = 0; m < shape.microBatches(); m++) {
            before[m] = inCommon.merge(both(placement, m, stage, other), 1, Integer::sum) - 1;
        }
        for (int m = 0; m < shape.microBatches(); m++) {
            int all = inCommon.getOrDefault(both(placement, m, stage, other), 1);
            long turn = (2L * before[m] + 1) * WHOLE / (2L * all);
            turns[stage][m] = Math.max(turns[stage][m], turn);
        }
    }

    /** The ranks of a micro-batch at two stages. */
    private static long both(Placement placement, int microBatch, int stage, int other) {
        long first = placement.rankOf(new WorkUnit(stage, microBatch, 0));
        return first << Integer.SIZE | placement.rankOf(new WorkUnit(other, microBatch, 0));
    }

    /** The turn of a micro-batch at a stage: less is earlier. */
    long of(int stage, int microBatch) {
        return turns[stage][microBatch];
    }
}
