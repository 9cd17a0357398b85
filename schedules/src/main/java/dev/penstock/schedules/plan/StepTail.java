package dev.penstock.schedules.plan;

import dev.penstock.schedules.ir.Placement;
import java.util.List;

/**
 * What every rank does after its last backward: reduce the gradients over the replicas, sum tied
 * embeddings, step the optimizer, and gather the new parameters where they are divided.
 */
final class StepTail {
    private StepTail() {}

    /** Entry r: nanoseconds of rank r. */
    static long[] nanos(
            PipelineWork work, List<Integer> partition, Placement placement, ZeroStage zero) {
        var tails = new long[work.layout().pipeline()];
        int last = partition.size() - 1;
        for (int stage = 0; stage <= last; stage++) {
            int rank = placement.rankOf(stage);
            long parameters = work.stageParameters(partition.get(stage), stage == 0, stage == last);
            tails[rank] += ofStage(work, work.ranks().get(rank).hardware(), parameters, zero);
        }
        int firstRank = placement.rankOf(0);
        int lastRank = placement.rankOf(last);
        if (work.request().model().tied() && firstRank != lastRank) {
            long sum = tiedSum(work, firstRank, lastRank);
            tails[firstRank] += sum;
            tails[lastRank] += sum;
        }
        return tails;
    }

    private static long ofStage(
            PipelineWork work, RankHardware hardware, long parameters, ZeroStage zero) {
        TrainingBytes bytes = work.request().bytes();
        int replicas = work.layout().data();
        Link link = hardware.dataLink();
        double gradients = (double) parameters * bytes.gradient();
        double gather =
                Collectives.oneWayNanos(link, replicas, (double) parameters * bytes.parameter());
        double reduction =
                switch (zero) {
                    case NONE -> Collectives.allReduceNanos(link, replicas, gradients);
                    case OPTIMIZER -> Collectives.oneWayNanos(link, replicas, gradients) + gather;
                    case GRADIENTS -> gather;
                    case PARAMETERS -> 0;
                };
        double own = zero.dividesOptimizer() ? (double) parameters / replicas : parameters;
        double moved = own * (2 * bytes.optimizer() + bytes.gradient() + 2 * bytes.parameter());
        return Math.round(reduction + 1e9 * moved / hardware.bytesPerSecond());
    }

    private static long tiedSum(PipelineWork work, int firstRank, int lastRank) {
        long bytes =
                work.request().bytes().gradient()
                        * Math.ceilDiv(
                                work.request().model().headMatrixParameters(),
                                (long) work.layout().tensor());
        Link way = RankHardware.hop(work.request().cluster(), work.layout(), firstRank, lastRank);
        return Math.round(Collectives.allReduceNanos(way, 2, (double) bytes));
    }
}
