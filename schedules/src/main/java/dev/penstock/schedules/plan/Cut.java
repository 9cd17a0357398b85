package dev.penstock.schedules.plan;

import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.plan.work.PipelineWork;
import dev.penstock.schedules.plan.work.StagePartitioner;
import java.util.List;

/**
 * Work whose layers are cut into stages.
 *
 * @param microBatches of each replica
 * @param partition blocks of each stage
 */
public record Cut(
        PipelineWork work, int microBatches, Placement placement, List<Integer> partition) {

    /** Of the partition whose most expensive stage is cheapest, memory aside. */
    static Cut fastest(PipelineWork work, int microBatches, Placement placement) {
        int stages = placement.stages();
        var load =
                new StagePartitioner.StageLoad() {
                    @Override
                    public long nanos(int stage, int blocks) {
                        return work.stageNanos(
                                placement.rankOf(stage), blocks, stage == 0, stage == stages - 1);
                    }

                    @Override
                    public boolean fits(int stage, int blocks) {
                        return true;
                    }
                };
        return new Cut(
                work,
                microBatches,
                placement,
                StagePartitioner.partition(work.request().model().layers(), stages, load)
                        .orElseThrow());
    }

    /** A micro-batch on the most expensive stage. */
    public long longestStageNanos() {
        int last = partition.size() - 1;
        long longest = 0;
        for (int stage = 0; stage <= last; stage++) {
            longest =
                    Math.max(
                            longest,
                            work.stageNanos(
                                    placement.rankOf(stage),
                                    partition.get(stage),
                                    stage == 0,
                                    stage == last));
        }
        return longest;
    }

    Cut withPartition(List<Integer> other) {
        return new Cut(work, microBatches, placement, other);
    }

    /** Bytes of one live unit. */
    public long keptBytes(int stage, int slice) {
        return work.keptBytes(
                placement.rankOf(stage),
                slice,
                partition.get(stage),
                stage == partition.size() - 1);
    }
}
