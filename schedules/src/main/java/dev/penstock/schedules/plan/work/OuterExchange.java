package dev.penstock.schedules.plan.work;

import dev.penstock.schedules.ir.Placement;
import java.util.List;
import java.util.stream.IntStream;

/**
 * What replicas that take steps alone exchange of their parameters, in fragments that take turns:
 * layer l belongs to fragment l modulo their number, tables and a tied matrix of the logits to the
 * first one, the last norm and an untied matrix to the last.
 *
 * @param bytesEach bytes of a parameter on its way
 * @param coded whether every replica gets what each of the others has, coded, and sums it up
 *     itself; otherwise they sum it together
 */
public record OuterExchange(int fragments, double bytesEach, boolean coded) {

    /**
     * Returns how long exchanges take: entry [f][r] is that of fragment f on rank r.
     *
     * @param partition blocks of each stage
     */
    public long[][] nanos(
            PlanRequest request, PlanChoice choice, List<Integer> partition, Placement placement) {
        PipelineWork work = HardwareCosts.work(request, choice);
        var nanos = new long[fragments][work.layout().pipeline()];
        int firstLayer = 0;
        for (int stage = 0; stage < partition.size(); stage++) {
            int rank = placement.rankOf(stage);
            for (int fragment = 0; fragment < fragments; fragment++) {
                long parameters = parameters(work, rank, partition, stage, firstLayer, fragment);
                nanos[fragment][rank] += nanos(work, rank, parameters);
            }
            firstLayer += partition.get(stage);
        }
        return nanos;
    }

    private long parameters(
            PipelineWork work,
            int rank,
            List<Integer> partition,
            int stage,
            int firstLayer,
            int fragment) {
        boolean first = stage == 0;
        boolean last = stage == partition.size() - 1;
        boolean isFirst = fragment == 0;
        boolean isLast = fragment == fragments - 1;
        int blocks =
                (int)
                        IntStream.range(firstLayer, firstLayer + partition.get(stage))
                                .filter(layer -> layer % fragments == fragment)
                                .count();
        boolean matrix = work.request().model().tied() ? isFirst : isLast;
        return work.trainedParameters(
                rank,
                blocks,
                first && isFirst,
                last && isLast,
                matrix && work.hasMatrix(first, last));
    }

    private long nanos(PipelineWork work, int rank, long parameters) {
        if (parameters == 0) {
            return 0;
        }
        Link link = work.ranks().get(rank).hardware().dataLink();
        int replicas = work.layout().data();
        double bytes = bytesEach * parameters;
        return Math.round(
                coded
                        ? Collectives.oneWayNanos(link, replicas, replicas * bytes)
                        : Collectives.allReduceNanos(link, replicas, bytes));
    }
}
