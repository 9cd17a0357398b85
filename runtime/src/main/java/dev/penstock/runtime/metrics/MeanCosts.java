package dev.penstock.runtime.metrics;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.Timeline;
import java.util.List;

/**
 * Mean measured times of forwards and backwards per stage and slice: over the micro-batches, which
 * all do the same work. Everything else is free.
 */
final class MeanCosts implements CostModel {
    private static final int KINDS = 5;

    private final PipelineShape shape;
    private final long[] sums;
    private final int[] counts;

    MeanCosts(Timeline measured) {
        Schedule schedule = measured.schedule();
        this.shape = schedule.shape();
        this.sums = new long[KINDS * shape.stages() * shape.slices()];
        this.counts = new int[sums.length];
        for (RankProgram program : schedule.programs()) {
            List<Op> ops = program.ops();
            for (int i = 0; i < ops.size(); i++) {
                if (ops.get(i) instanceof Op.Compute compute) {
                    int kind = indexOf(compute);
                    sums[kind] += measured.durationNanos(program.rank(), i);
                    counts[kind]++;
                }
            }
        }
    }

    @Override
    public long nanos(int rank, int position, Op op) {
        return switch (op) {
            case Op.Compute compute -> {
                int kind = indexOf(compute);
                yield counts[kind] == 0 ? 0 : Math.round((double) sums[kind] / counts[kind]);
            }
            case Op.Overlapped(Op.Forward forward, Op.InputGradient backward) ->
                    nanos(rank, position, forward) + nanos(rank, position, backward);
            case Op.Transfer _, Op.ParameterOp _, Op.ReduceGradients _ -> 0;
        };
    }

    private int indexOf(Op.Compute op) {
        WorkUnit unit = op.unit();
        int kind =
                switch (op) {
                    case Op.Forward _ -> 0;
                    case Op.Backward _ -> 1;
                    case Op.BackwardInput _ -> 2;
                    case Op.BackwardWeight _ -> 3;
                    case Op.Recompute _ -> 4;
                };
        return (kind * shape.stages() + unit.stage()) * shape.slices() + unit.slice();
    }
}
