package dev.penstock.schedules.plan;

import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.plan.work.PipelineWork;
import dev.penstock.schedules.plan.work.RankMemory;
import dev.penstock.schedules.plan.work.StagePartitioner;
import dev.penstock.schedules.plan.work.ZeroStage;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.function.IntUnaryOperator;

/** Whether a cut can fit into the devices, from how many units the ranks hold. */
final class MemoryFit {
    private final PipelineShape shape;
    private final ZeroStage zero;

    /** By rank. */
    private final IntUnaryOperator peakUnits;

    private MemoryFit(PipelineShape shape, ZeroStage zero, IntUnaryOperator peakUnits) {
        this.shape = shape;
        this.zero = zero;
        this.peakUnits = peakUnits;
    }

    /** From what every order of a family holds at least. */
    static MemoryFit atLeast(ScheduleFamily family, PipelineShape shape, ZeroStage zero) {
        return new MemoryFit(shape, zero, rank -> family.leastPeakUnits(shape, rank));
    }

    /** From what an order holds. */
    static MemoryFit of(PipelineShape shape, ZeroStage zero, IntUnaryOperator peakUnits) {
        return new MemoryFit(shape, zero, peakUnits);
    }

    /** The least that the rank that is missing most needs. */
    RankMemory tightest(Cut cut) {
        int ranks = shape.ranks();
        var unit = new long[ranks];
        Arrays.fill(unit, Long.MAX_VALUE);
        for (int stage = 0; stage < shape.stages(); stage++) {
            int rank = cut.placement().rankOf(stage);
            for (int slice = 0; slice < shape.slices(); slice++) {
                unit[rank] = Math.min(unit[rank], cut.keptBytes(stage, slice));
            }
        }
        RankMemory worst = least(cut, 0, unit[0]);
        for (int rank = 1; rank < ranks; rank++) {
            RankMemory memory = least(cut, rank, unit[rank]);
            if (memory.excess() > worst.excess()) {
                worst = memory;
            }
        }
        return worst;
    }

    private RankMemory least(Cut cut, int rank, long unitBytes) {
        return RankMemory.of(
                cut.work(),
                cut.partition(),
                cut.placement(),
                zero,
                rank,
                peakUnits.applyAsInt(rank) * unitBytes);
    }

    /** The fastest cut that may fit; one stage per rank. */
    Optional<Cut> fastestFitting(Cut cut) {
        return partition(cut, true);
    }

    /** The cut whose tightest device is missing least; one stage per rank. */
    Cut smallest(Cut cut) {
        return partition(cut, false).orElseThrow();
    }

    private Optional<Cut> partition(Cut cut, boolean fastest) {
        int last = shape.stages() - 1;
        var load =
                new StagePartitioner.StageLoad() {
                    @Override
                    public long nanos(int stage, int blocks) {
                        return fastest
                                ? cut.work().stageNanos(stage, blocks, stage == 0, stage == last)
                                : excess(cut, stage, blocks);
                    }

                    @Override
                    public boolean fits(int stage, int blocks) {
                        return !fastest || excess(cut, stage, blocks) <= 0;
                    }
                };
        int blocks = cut.work().request().model().layers();
        Optional<List<Integer>> found = StagePartitioner.partition(blocks, last + 1, load);
        return found.map(cut::withPartition);
    }

    private long excess(Cut cut, int stage, int blocks) {
        boolean first = stage == 0;
        boolean last = stage == shape.stages() - 1;
        PipelineWork work = cut.work();
        long unit = Long.MAX_VALUE;
        for (int slice = 0; slice < shape.slices(); slice++) {
            unit = Math.min(unit, work.keptBytes(stage, slice, blocks, last));
        }
        return RankMemory.state(work, zero, stage, blocks, first, last)
                + RankMemory.working(work, zero, stage, blocks, first, last)
                + peakUnits.applyAsInt(stage) * unit
                - work.ranks().get(stage).hardware().memoryBytes();
    }
}
