package dev.penstock.schedules.plan;

import dev.penstock.schedules.plan.work.HardwareCosts;
import dev.penstock.schedules.plan.work.LayoutHardware;
import dev.penstock.schedules.plan.work.ModelShape;
import dev.penstock.schedules.plan.work.PlanRequest;
import dev.penstock.schedules.plan.work.RankHardware;
import dev.penstock.schedules.plan.work.StageTimes;

/** Times that no order can undercut. */
final class LeastTime {
    private LeastTime() {}

    /**
     * A bound for every order on this partition. Rank r cannot begin before the first slice has
     * come through the stages below its lowest, then computes all its own, and where backwards are
     * whole, its last one still goes down through these stages to rank 0. Then come the tails.
     *
     * <pre>
     * rank 0 | F
     * rank 1 |  F                 B          the first slice comes, the last gradient goes
     * rank 2 |   [all F and B    ]
     * </pre>
     *
     * @param tails entry r: the least that rank r waits after its last backward
     * @param split whether backwards are in two parts: then the last op may be one that nobody
     *     waits for
     */
    static long ofStep(
            HardwareCosts costs, Cut cut, StageTimes times, long[] tails, boolean split) {
        int stages = cut.partition().size();
        int ranks = tails.length;
        var busy = new long[ranks];
        for (int stage = 0; stage < stages; stage++) {
            busy[cut.placement().rankOf(stage)] +=
                    cut.microBatches() * ofMicroBatch(times, cut.work().slices(), stage, split);
        }
        long most = 0;
        long before = 0;
        long after = 0;
        for (int rank = 0; rank < ranks; rank++) {
            // the lowest stage of rank r is stage r, in loops and in V shape
            most = Math.max(most, before + busy[rank] + tails[rank]);
            if (!split) {
                most = Math.max(most, before + busy[rank] + after + tails[0]);
            }
            before += times.forward(rank, 0) + costs.hopNanos(rank, 0);
            after += leastReturn(costs, times, cut.work().slices(), rank);
        }
        return most;
    }

    private static long ofMicroBatch(StageTimes times, int slices, int stage, boolean split) {
        long nanos = 0;
        for (int slice = 0; slice < slices; slice++) {
            nanos +=
                    times.forward(stage, slice)
                            + (split
                                    ? times.backwardInput(stage, slice)
                                            + times.backwardWeight(stage, slice)
                                    : times.backward(stage, slice));
        }
        return nanos;
    }

    private static long leastReturn(HardwareCosts costs, StageTimes times, int slices, int stage) {
        long least = Long.MAX_VALUE;
        for (int slice = 0; slice < slices; slice++) {
            least = Math.min(least, times.backward(stage, slice) + costs.returnNanos(stage, slice));
        }
        return least;
    }

    /**
     * A bound for everything in a layout: all FLOPs and all-reduces of a replica's sequences,
     * spread over the ranks as evenly as the speeds of all their shards allow.
     */
    static long ofLayout(PlanRequest request, LayoutHardware hardware) {
        ModelShape model = request.model();
        double h = model.width();
        int s = model.sequence();
        double attention = 4 * model.queryColumns() * model.meanContext(0, s);
        double block = 3 * (2.0 * model.blockMatrixParameters() + attention) * s;
        double head = 6.0 * model.vocabulary() * h * s;
        double allSpeeds = 0;
        double leastSpeed = Double.MAX_VALUE;
        double joined = Double.MAX_VALUE;
        for (int r = 0; r < hardware.ranks().size(); r++) {
            RankHardware rank = hardware.ranks().get(r);
            int shards = hardware.layout().shardsOf(r);
            double speed = shards * rank.flopsPerSecond();
            allSpeeds += speed;
            leastSpeed = Math.min(leastSpeed, speed);
            double bytes = s * h * request.bytes().activation();
            double reduced =
                    shards == 1
                            ? 0
                            : 4 * 2 * rank.tensorLink().nanos(bytes * (shards - 1) / shards);
            joined = Math.min(joined, reduced);
        }
        double sequences = (double) request.batch() / hardware.layout().data();
        double computed = 1e9 * (model.layers() * block + head) / allSpeeds;
        double reduced = model.layers() * joined * leastSpeed / allSpeeds;
        // below what rounding of single ops to nanoseconds could take away
        return (long) (sequences * (computed + reduced) * (1 - 1e-6));
    }
}
