package dev.penstock.runtime.lengths;

import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.simulate.CostModel;

/**
 * The costs of a step whose micro-batches are shorter than the context, from those of whole
 * sequences: a computation takes the share that its micro-batch has of the FLOPs of its stage,
 * which attention lets fall faster than the length; a transfer that of the tokens.
 */
public final class LengthCosts implements CostModel {
    private final CostModel whole;
    private final int context;
    private final double[][] shares;
    private final int[] tokens;
    private final long parts;

    /**
     * @param whole costs of whole sequences
     * @param tokens of a sequence of each micro-batch
     */
    public LengthCosts(CostModel whole, ModelShape model, StagePartition partition, int[] tokens) {
        this(whole, model, partition, tokens, 1);
    }

    /**
     * @param parts factor on all costs, so that shares of small ones are told apart
     */
    LengthCosts(
            CostModel whole, ModelShape model, StagePartition partition, int[] tokens, long parts) {
        this.whole = whole;
        this.parts = parts;
        this.context = model.context();
        this.tokens = tokens.clone();
        shares = new double[partition.stages()][tokens.length];
        for (int stage = 0; stage < shares.length; stage++) {
            double all = partition.flops(model, stage, context);
            for (int m = 0; m < tokens.length; m++) {
                shares[stage][m] = partition.flops(model, stage, tokens[m]) / all;
            }
        }
    }

    /** Returns the costs of whole sequences in which a FLOP costs the same everywhere. */
    public static CostModel whole(ModelShape model, StagePartition partition) {
        return (_, _, op) -> flops(model, partition, op);
    }

    private static long flops(ModelShape model, StagePartition partition, Op op) {
        long flops = 0;
        for (Op.Compute each : op.computations()) {
            long all = partition.flops(model, each.stage(), model.context());
            long parts =
                    switch (each) {
                        case Op.Backward _ -> 2;
                        case Op.Forward _,
                                Op.BackwardInput _,
                                Op.BackwardWeight _,
                                Op.Recompute _ ->
                                1;
                    };
            flops += all * parts / 3;
        }
        return flops;
    }

    @Override
    public long nanos(int rank, int position, Op op) {
        long nanos = parts * whole.nanos(rank, position, op);
        return switch (op) {
            case Op.Compute compute -> Math.round(nanos * share(compute.unit()));
            case Op.Overlapped(Op.Forward forward, Op.Compute partner) ->
                    pair(nanos, forward, partner);
            case Op.Transfer transfer -> Math.round(nanos * shareOfTokens(transfer.unit()));
            case Op.ActivationOp _, Op.ParameterOp _, Op.ReduceGradients _ -> nanos;
        };
    }

    private long pair(long nanos, Op.Forward forward, Op.Compute partner) {
        int weight = partner instanceof Op.Backward ? 2 : 1;
        double shares = share(forward.unit()) + weight * share(partner.unit());
        return Math.round(nanos * shares / (1 + weight));
    }

    private double share(WorkUnit unit) {
        return shares[unit.stage()][unit.microBatch()];
    }

    private double shareOfTokens(WorkUnit unit) {
        return (double) tokens[unit.microBatch()] / context;
    }

    @Override
    public long latencyNanos(Channel channel) {
        return parts * whole.latencyNanos(channel);
    }

    @Override
    public long occupancyNanos(Channel channel, WorkUnit unit) {
        return Math.round(parts * whole.occupancyNanos(channel, unit) * shareOfTokens(unit));
    }

    @Override
    public long backgroundNanos(int rank, Op op) {
        return parts * whole.backgroundNanos(rank, op);
    }
}
