package dev.penstock.schedules.plan.work;

import dev.penstock.schedules.ir.Placement;
import java.util.List;

/**
 * What follows the backwards. The gradients of a stage are reduced over the replicas as soon as
 * they are complete, beside what the rank still computes; a rank's reductions run one after
 * another. When all are there, it sums tied embeddings, steps the optimizer, and gathers the new
 * parameters where they are divided.
 */
public final class StepTail {
    private StepTail() {}

    /** Entry s: nanoseconds of stage s's reduction; ZeRO 2 and 3 reduce inside the backwards. */
    public static long[] reductions(
            PipelineWork work, List<Integer> partition, Placement placement, ZeroStage zero) {
        return zero.dividesGradients()
                ? new long[partition.size()]
                : sums(work, partition, placement, zero);
    }

    /** Entry s: nanoseconds of one sum of stage s's gradients over its replicas. */
    static long[] sums(
            PipelineWork work, List<Integer> partition, Placement placement, ZeroStage zero) {
        return ofStages(
                partition,
                placement,
                work,
                work.request().bytes().gradient(),
                work::trainedParameters,
                zero == ZeroStage.NONE ? Collectives::allReduceNanos : Collectives::oneWayNanos);
    }

    /** Entry s: nanoseconds of one gather of stage s's parameters. */
    static long[] gathers(PipelineWork work, List<Integer> partition, Placement placement) {
        return ofStages(
                partition,
                placement,
                work,
                work.request().bytes().parameter(),
                work::stageParameters,
                Collectives::oneWayNanos);
    }

    @FunctionalInterface
    private interface Nanos {
        double of(Link link, int replicas, double bytes);
    }

    /** Parameters of a stage. */
    @FunctionalInterface
    private interface Counted {
        long of(int rank, int blocks, boolean first, boolean last);
    }

    private static long[] ofStages(
            List<Integer> partition,
            Placement placement,
            PipelineWork work,
            long bytesEach,
            Counted counted,
            Nanos nanos) {
        var ofStages = new long[partition.size()];
        int last = partition.size() - 1;
        for (int stage = 0; stage <= last; stage++) {
            int rank = placement.rankOf(stage);
            Link link = work.ranks().get(rank).hardware().dataLink();
            long parameters = counted.of(rank, partition.get(stage), stage == 0, stage == last);
            ofStages[stage] =
                    Math.round(
                            nanos.of(link, work.layout().data(), (double) bytesEach * parameters));
        }
        return ofStages;
    }

    /**
     * Entry r: what rank r waits for at least when its last backward has ended, of whatever stage
     * that is.
     */
    public static long[] least(Placement placement, long[] reductions, long[] tails) {
        var least = tails.clone();
        for (int rank = 0; rank < tails.length; rank++) {
            long shortest = Long.MAX_VALUE;
            for (int stage : placement.stagesOf(rank)) {
                shortest = Math.min(shortest, reductions[stage]);
            }
            least[rank] += shortest;
        }
        return least;
    }

    /** Entry r: nanoseconds of rank r when all its gradients are reduced. */
    public static long[] nanos(
            PipelineWork work, List<Integer> partition, Placement placement, ZeroStage zero) {
        var tails = new long[work.layout().pipeline()];
        int last = partition.size() - 1;
        for (int stage = 0; stage <= last; stage++) {
            int rank = placement.rankOf(stage);
            long parameters =
                    work.trainedParameters(rank, partition.get(stage), stage == 0, stage == last);
            tails[rank] += ofStage(work, work.ranks().get(rank).hardware(), parameters, zero);
        }
        int firstRank = placement.rankOf(0);
        int lastRank = placement.rankOf(last);
        ModelShape model = work.request().model();
        if (model.tied() && model.trainsHead() && firstRank != lastRank) {
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
        double gather =
                Collectives.oneWayNanos(link, replicas, (double) parameters * bytes.parameter());
        double anew =
                switch (zero) {
                    case OPTIMIZER, GRADIENTS -> gather;
                    case NONE, PARAMETERS -> 0;
                };
        double own = zero.dividesOptimizer() ? (double) parameters / replicas : parameters;
        double moved = own * (2 * bytes.optimizer() + bytes.gradient() + 2 * bytes.parameter());
        return Math.round(anew + 1e9 * moved / hardware.bytesPerSecond());
    }

    private static long tiedSum(PipelineWork work, int firstRank, int lastRank) {
        long bytes =
                work.request().bytes().gradient()
                        * Math.ceilDiv(
                                work.request().model().headMatrixParameters(),
                                (long) work.layout().shardsOf(firstRank));
        Link way = RankHardware.hop(work.request().cluster(), work.layout(), firstRank, lastRank);
        return Math.round(Collectives.allReduceNanos(way, 2, (double) bytes));
    }
}
